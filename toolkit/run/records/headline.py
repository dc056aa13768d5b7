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
    return {name: value for name, value in _flat(document).items() if number(value) is not None}


def _flat(document: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    found = document.get("metrics")
    for name, value in found.items() if isinstance(found, dict) else ():
        is_split = isinstance(value, dict)
        flat |= {f"{name}_{inner}": value[inner] for inner in value} if is_split else {name: value}
    return flat


def headline(metrics: Mapping[str, float]) -> float | None:
    """The value of the validation's main metric; None before the first validation."""
    found = main_metric({"metrics": metrics})
    return None if found is None else found[1]


def main_metric(document: Mapping[str, Any]) -> tuple[str, float | None] | None:
    """Name and value of the validation's main metric, of the metrics in a document; None without one.

    The name lacks the split's prefix. The value is None if it is not finite.
    """
    flat = _flat(document)
    found = main_name(name.removeprefix(_VALIDATION) for name in flat if name.startswith(_VALIDATION))
    return None if found is None else (found, number(flat[_VALIDATION + found]))


def main_name(names: Iterable[str]) -> str | None:
    """The task's main metric among those of the validation: the first score other than the loss.

    The loss if there is no other; None if there is no score.
    """
    scores = [name for name in names if name not in NOT_SCORES]
    return next((name for name in scores if name != "loss"), next(iter(scores), None))
