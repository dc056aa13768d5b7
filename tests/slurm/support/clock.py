"""Time that a test moves on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Clock:
    """A clock that is moved by hand."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now
