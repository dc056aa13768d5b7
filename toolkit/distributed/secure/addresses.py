"""The addresses of this host, and the interface that leads to the others."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from contextlib import suppress

import psutil

_LOOPBACK, _LOOPBACK_NET = "127.0.0.1", "127."
#: Any port works: connecting a datagram socket sends nothing.
_DISCARD = 9


def own_addresses(machines: int) -> list[str]:
    """Return the addresses at which a run on this many machines can reach this process, the best first."""
    if machines == 1:
        return [_LOOPBACK]
    every = _every_address()
    named = [address for address in _looked_up(socket.gethostname()) if address in every]
    found = [address for address in dict.fromkeys([*named, *every]) if not address.startswith(_LOOPBACK_NET)]
    return found or [_LOOPBACK]


def known_addresses(known_as: Sequence[str]) -> list[str]:
    """Return the addresses of this host that other hosts use; empty if they cannot be determined.

    known_as    names or addresses of this host, then of others

    On the host itself, its name may resolve to a loopback address, as on Debian (127.0.1.1): then the next
    name decides.
    """
    usable = {address for address in _every_address() if not address.startswith(_LOOPBACK_NET)}
    for name in known_as:
        found = [address for address in _looked_up(name) if not address.startswith(_LOOPBACK_NET)]
        if here := [address for address in found if address in usable]:
            return here
        if leading := [source for source in map(_source_for, found) if source in usable]:
            return leading[:1]
    return []


def _source_for(address: str) -> str:
    """Return this host's address on the route to another address; empty if there is no route."""
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((address, _DISCARD))
        return str(probe.getsockname()[0])
    return ""


def _looked_up(name: str) -> list[str]:
    with suppress(OSError):
        infos = socket.getaddrinfo(name, None, socket.AF_INET, socket.SOCK_STREAM)
        return [str(info[4][0]) for info in infos]
    return []


def _every_address() -> list[str]:
    """Return the IPv4 addresses of the interfaces that gloo may use."""
    chosen = os.environ.get("GLOO_SOCKET_IFNAME", "")
    return [
        entry.address
        for name, entries in psutil.net_if_addrs().items()
        for entry in entries
        if entry.family == socket.AF_INET and (not chosen or name in chosen.split(","))
    ]


def addresses_of(name: str, machines: int) -> list[str]:
    """Return the addresses of this host that a name resolves to; empty without any."""
    own = {_LOOPBACK, *_every_address()}
    return [
        address
        for address in _looked_up(name)
        if address in own or (address.startswith(_LOOPBACK_NET) and machines == 1)
    ]


def route_to(addresses: list[str]) -> tuple[str, str]:
    """Return the first reachable address, and the address of this host on that route. Sends nothing."""
    for address in addresses:
        if source := _source_for(address):
            return address, source
    return _LOOPBACK, _LOOPBACK


def use_interface_of(address: str) -> None:
    """Tell gloo the interface that leads to the other hosts, unless the user has chosen one.

    By default gloo takes the address of the host name, which on many machines is 127.0.1.1.
    """
    if "GLOO_SOCKET_IFNAME" in os.environ:
        return
    for name, entries in psutil.net_if_addrs().items():
        if any(entry.address == address for entry in entries):
            os.environ["GLOO_SOCKET_IFNAME"] = name
            return
