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
    """Name and value of the validation's main metric; the name lacks the split's prefix."""
    names = (name.removeprefix(_VALIDATION) for name in metrics if name.startswith(_VALIDATION))
    found = main_name(names)
    return None if found is None else (found, metrics[_VALIDATION + found])


def main_name(names: Iterable[str]) -> str | None:
    """The task's main metric among those of the validation: the first score other than the loss.

    The loss if there is no other; None if there is no score.
    """
    scores = [name for name in names if name not in NOT_SCORES]
    return next((name for name in scores if name != "loss"), next(iter(scores), None))
