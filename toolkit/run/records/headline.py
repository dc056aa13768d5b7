"""The scores of a run, and the one that is shown where there is room for only one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolkit.system.output.sanitize import number

_VALIDATION = "validation_"


def flat_metrics(document: Mapping[str, Any]) -> dict[str, float]:
    """Return the metrics of result.json (nested by split) or progress.json (flat) as a flat dictionary."""
    flat: dict[str, float] = {}
    found = document.get("metrics")
    for name, value in found.items() if isinstance(found, dict) else ():
        if isinstance(value, dict):
            flat.update(
                {f"{name}_{inner}": each for inner, each in value.items() if number(each) is not None}
            )
        elif number(value) is not None:
            flat[name] = value
    return flat


def headline(metrics: Mapping[str, float]) -> float | None:
    """The value of the validation's main metric; None before the first validation."""
    found = main_metric(metrics)
    return None if found is None else found[1]


def main_metric(metrics: Mapping[str, float]) -> tuple[str, float] | None:
    """Name and value of the first validation metric other than the loss; of the loss if there is no other.

    The first metric is the task's main one. The name lacks the split's prefix.
    """
    loss = f"{_VALIDATION}loss"
    found = next((name for name in metrics if name != loss and name.startswith(_VALIDATION)), loss)
    return (found.removeprefix(_VALIDATION), metrics[found]) if found in metrics else None
