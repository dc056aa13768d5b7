"""Shortening long lists and texts, for messages."""

from __future__ import annotations

from collections.abc import Iterable


def few(names: Iterable[object], most: int) -> str:
    """The first names, at most `most`, and the number of the others."""
    known = list(names)
    shown = ", ".join(map(str, known[:most]))
    return f"{shown} and {len(known) - most} more" if len(known) > most else shown


def shortened(text: str, width: int) -> str:
    """A text of at most `width` characters; the last one shows that it was cut."""
    return text if len(text) <= width else text[: width - 1] + "…"
