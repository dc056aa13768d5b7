"""The scores of a run, and the one that is shown where there is room for only one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolkit.system.output.sanitize import number

#: Columns of metrics.jsonl that do not measure quality.
NOT_SCORES = frozenset(
    {"time", "step", "epoch", "split", "count", "lr", "grad_norm", "samples_per_s", "tokens_per_s"}
)
_VALIDATION = "validation_"


def flat_metrics(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metrics of result.json (nested by split) or progress.json (flat) as a flat dictionary.

    A value may be anything that the file holds, not only a number.
    """
    flat: dict[str, Any] = {}
    found = document.get("metrics")
    for name, value in found.items() if isinstance(found, dict) else ():
        if isinstance(value, dict):
            for inner, item in value.items():
                flat[f"{name}_{inner}"] = item
        else:
            flat[name] = value
    return flat


def finite(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Return the metrics whose values are usable numbers."""
    return {name: value for name, value in metrics.items() if number(value) is not None}


def headline(metrics: Mapping[str, float]) -> float | None:
    """The value of the validation's main metric; None before the first validation."""
    found = main_metric(metrics)
    return None if found is None else found[1]


def main_metric(metrics: Mapping[str, Any]) -> tuple[str, float | None] | None:
    """Name and value of the validation's main metric among flat metrics; None without one.

    The name lacks the split's prefix. The value is None if it is not finite.
    """
    found = main_name(name.removeprefix(_VALIDATION) for name in metrics if name.startswith(_VALIDATION))
    return None if found is None else (found, number(metrics[_VALIDATION + found]))


def main_name(names: Iterable[str]) -> str | None:
    """The task's main metric among those of the validation: the first score other than the loss.

    The loss if there is no other; None if there is no score.
    """
    scores = [name for name in names if name not in NOT_SCORES]
    return next((name for name in scores if name != "loss"), next(iter(scores), None))
