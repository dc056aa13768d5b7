"""Correction of spelling errors: all words of a text are written at once."""

from __future__ import annotations


class SecWordsNmtTask:
    """Being written."""
