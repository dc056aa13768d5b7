"""Repair of white space: what to do with each character of a text."""

from __future__ import annotations


class TokenizationRepairTask:
    """Keep, insert a space before it, or delete it, for each character."""
