"""Shortens names and texts for messages."""

from __future__ import annotations

from collections.abc import Sequence

_NAMES_SHOWN = 8
_CHARACTERS_SHOWN = 60


def short(text: str) -> str:
    return text if len(text) <= _CHARACTERS_SHOWN else text[:_CHARACTERS_SHOWN] + "…"


def shown(names: Sequence[str]) -> str:
    """The first few names, separated by commas."""
    shown = ", ".join(short(name) for name in names[:_NAMES_SHOWN])
    return shown + (f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else "")
