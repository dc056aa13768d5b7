"""Names of hosts as users write them, and which of them mean the same host."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable


def is_local_name(name: str) -> bool:
    """Whether this name means the machine on which it is used."""
    return name.lower() in ("localhost", "127.0.0.1", "::1")


def is_same_host(one: str, other: str) -> bool:
    """Whether two names mean the same host: equal, or one of them the short form of the other."""
    one, other = one.lower().rstrip("."), other.lower().rstrip(".")
    if one == other or (is_local_name(one) and is_local_name(other)):
        return True
    if is_address(one) or is_address(other):
        return False
    short = {one.partition(".")[0], other.partition(".")[0]}
    return len(short) == 1 and bool(short & {one, other})


def is_address(name: str) -> bool:
    """Whether a host is named by its IP address."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def named_twice(names: Iterable[str]) -> tuple[str, str] | None:
    """The first two of these names that mean the same host; None without such names."""
    seen: list[str] = []
    for name in names:
        for other in seen:
            if is_same_host(other, name):
                return other, name
        seen.append(name)
    return None
