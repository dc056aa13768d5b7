"""Rows that are texts, for predictors. Imports no torch."""

from __future__ import annotations

import json
from typing import Any

from toolkit.analysis.prediction.predictor import UnfitRow
from toolkit.nlp.characters import no_character


def checked_text(value: Any, key: str) -> str:
    """Return `value`, the text of a row or under its key. Raises UnfitRow if it is not a valid text."""
    if not isinstance(value, str):
        # The numbers of a list may have become texts.
        found = "a list" if isinstance(value, list) else _shown(value)
        raise UnfitRow(f'found {found}, expected a text, or {{"{key}": "a text"}}')
    if odd := no_character(value):
        raise UnfitRow(f"found {odd}, which is not a character of text")
    return value


def _shown(value: Any) -> str:
    """Return a value as it is written in a row: null, not None."""
    return json.dumps(value) if value is None or isinstance(value, bool) else repr(value)
