"""Metrics over the steps."""

from __future__ import annotations

import math
from collections.abc import Mapping

#: One split's metrics: columns of equal length ordered by step; None if a line lacks the metric.
Columns = Mapping[str, tuple[float | None, ...]]


def points(curves: Mapping[str, Columns], split: str, metric: str) -> tuple[list[float], list[float]]:
    """Return steps and values of one curve, without missing and non-finite values."""
    columns = curves.get(split, {})
    pairs = [
        (step, value)
        for step, value in zip(columns.get("step", ()), columns.get(metric, ()), strict=False)
        if step is not None and value is not None and math.isfinite(value)
    ]
    return [step for step, _ in pairs], [value for _, value in pairs]
