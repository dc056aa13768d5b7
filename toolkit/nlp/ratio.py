"""Shares of counts."""

from __future__ import annotations


def ratio(part: float, whole: float) -> float:
    """Return the share; 0 if the whole is 0."""
    return part / whole if whole else 0.0
