"""Correction of spelling errors: a text is written anew."""

from __future__ import annotations


class SecNmtTask:
    """Being written."""
