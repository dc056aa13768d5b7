"""Refused connections: each address is recorded once, and the total at the end, also under a flood."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

EVENT, SUM_EVENT = "connection_refused", "connections_refused"

#: Addresses that are recorded one by one; further ones are only counted.
_MOST = 16
_OTHERS = "others"


class Refusals:
    """Counts refused connections by address. Any thread may call it.

    note  called with an event and its facts; at most 17 times
    """

    def __init__(self, note: Callable[..., None]) -> None:
        self._note = note
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def add(self, address: str, why: str) -> None:
        """Count a refused connection; record the first one from its address."""
        with self._lock:
            is_known = address in self._counts
            name = address if is_known or len(self._counts) < _MOST else _OTHERS
            is_first = name not in self._counts
            self._counts[name] += 1
        if is_first and name != _OTHERS:
            self._note(EVENT, address=name, why=why)

    def close(self) -> None:
        """Record the total, unless each connection has been recorded."""
        if self._counts.total() > len(self._counts):
            self._note(SUM_EVENT, count=self._counts.total(), addresses=dict(self._counts))

    @property
    def count(self) -> int:
        """Number of refused connections."""
        return self._counts.total()

    def __str__(self) -> str:
        """List the refused addresses, for a message."""
        return ", ".join(f"{count} from {address}" for address, count in self._counts.items())
