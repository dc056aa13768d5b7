"""Shortening long lists, for messages."""

from __future__ import annotations

from collections.abc import Iterable


def few(names: Iterable[object], most: int) -> str:
    """The first names, at most `most`, and the number of the others."""
    known = list(names)
    shown = ", ".join(map(str, known[:most]))
    return f"{shown} and {len(known) - most} more" if len(known) > most else shown
