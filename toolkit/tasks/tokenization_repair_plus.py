"""Detection and correction of spelling errors in texts whose white space may be wrong."""

from __future__ import annotations


class TokenizationRepairPlusTask:
    """Right or wrong, for each word of the repaired text, and what it should be."""
