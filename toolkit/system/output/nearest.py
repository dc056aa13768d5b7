"""What a misspelt name most likely means."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def nearest(name: str, valid: Iterable[Any]) -> str | None:
    """Return the valid name that a misspelt one most likely means, or None. Upper case counts as lower."""
    # Imported late: only needed for an error.
    from difflib import get_close_matches

    names = {str(each).lower(): str(each) for each in valid}
    matches = get_close_matches(name.lower(), names, n=1, cutoff=0.7)
    return names[matches[0]] if matches else None


def suggest(name: str, valid: Iterable[Any]) -> str:
    """Return a hint for an invalid name: the nearest valid one, or all of them."""
    names = [str(each) for each in valid]
    return guess(name, names) or (f"valid: {', '.join(names)}" if names else "")


def guess(value: Any, valid: Any) -> str:
    """Return a hint if a text is similar to a valid one."""
    match = nearest(value, valid) if isinstance(value, str) else None
    return f"did you mean {match}?" if match else ""
