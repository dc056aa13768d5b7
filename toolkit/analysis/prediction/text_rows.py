"""Rows that are texts, for predictors. Imports no torch."""

from __future__ import annotations

from typing import Any

from toolkit.analysis.prediction.predictor import UnfitRow
from toolkit.nlp.characters import no_character

#: Shown without their values, because the numbers of JSON may have become texts.
_KINDS: dict[type, str] = {list: "a list", dict: "an object"}


def checked_text(value: Any, key: str) -> str:
    """Return `value`, the text of a row or under its key. Raises UnfitRow if it is not a valid text."""
    if not isinstance(value, str):
        found = _KINDS.get(type(value), repr(value))
        raise UnfitRow(f'found {found}, expected a text, or {{"{key}": "a text"}}')
    if odd := no_character(value):
        raise UnfitRow(f"found {odd}, which is not a character of text")
    return value
