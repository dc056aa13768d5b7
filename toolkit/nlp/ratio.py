"""Shares of counts."""

from __future__ import annotations


def ratio(part: float, whole: float) -> float:
    """Return the share; 0 of nothing."""
    return part / whole if whole else 0.0
