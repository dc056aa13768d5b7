"""Shorten names and texts for messages, and suggest names."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from toolkit.system.output.few import few, shortened

_NAMES_SHOWN = 8
_CHARACTERS_SHOWN = 61


def short(text: str) -> str:
    return shortened(text, _CHARACTERS_SHOWN)


def shown(names: Iterable[str]) -> str:
    """Return the first few names, separated by commas."""
    return few(map(short, names), _NAMES_SHOWN)


def similar(name: str, names: Iterable[str]) -> str:
    """Suggest the most similar name; empty if no name is similar."""
    near = get_close_matches(name, list(names), n=1)
    return f"did you mean {near[0]!r}?" if near else ""
