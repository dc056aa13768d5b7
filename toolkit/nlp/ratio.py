"""Shares of counts, and means of sums."""

from __future__ import annotations

import math


def ratio(part: float, whole: float) -> float:
    """Return the share; 0 if the whole is 0."""
    return part / whole if whole else 0.0


def mean(total: float, count: float) -> float:
    """Return the mean; NaN if the count is 0, because 0 would be the best loss."""
    return total / count if count else math.nan
