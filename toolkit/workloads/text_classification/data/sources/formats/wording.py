"""Shortens names and texts for messages."""

from __future__ import annotations

from collections.abc import Iterable

from toolkit.system.few import few

_NAMES_SHOWN = 8
_CHARACTERS_SHOWN = 60


def short(text: str) -> str:
    return text if len(text) <= _CHARACTERS_SHOWN else text[:_CHARACTERS_SHOWN] + "…"


def shown(names: Iterable[str]) -> str:
    """The first few names, separated by commas."""
    return few(map(short, names), _NAMES_SHOWN)
