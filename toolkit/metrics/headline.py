"""The one score that is shown where there is room for no more."""

from __future__ import annotations

from collections.abc import Mapping

_VALIDATION = "validation_"


def headline(metrics: Mapping[str, float]) -> float | None:
    """The first metric of the validation beside its loss, which is a task's main one; or the loss."""
    found = [name for name in metrics if name.startswith(_VALIDATION)]
    found.sort(key=lambda name: name == f"{_VALIDATION}loss")
    return metrics[found[0]] if found else None
