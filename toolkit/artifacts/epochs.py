"""The lines of metrics.jsonl, one value for each epoch. Light: the report reads with it, too."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

#: Columns that say where a line belongs, not what was measured.
_PLACE = ("time", "step", "epoch", "split")
#: An epoch's last step may lie a rounding error beyond its end.
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """One pass over the training set, the first is 1.

    training    means of its lines, each weighted by the steps that it stands for
    validation  scores of the last evaluation in it; empty where there was none
    """

    epoch: int
    training: Mapping[str, float]
    validation: Mapping[str, float]


def by_epoch(lines: Iterable[Mapping[str, Any]]) -> tuple[Epoch, ...]:
    """Sum lines of metrics up by epoch; a line belongs to the epoch in which it was written.

    Of two lines for one step the later one counts. The last epoch may be under way.
    """
    splits: dict[str, dict[int, Mapping[str, Any]]] = {"train": {}, "validation": {}}
    for line in lines:
        if line.get("split") in splits and line.get("epoch") is not None and "step" in line:
            splits[line["split"]][line["step"]] = line
    training = _means(splits["train"])
    validation = {_epoch(line): _numbers(line) for _, line in sorted(splits["validation"].items())}
    return tuple(
        Epoch(epoch=epoch, training=training.get(epoch, {}), validation=validation.get(epoch, {}))
        for epoch in sorted({*training, *validation})
    )


def _means(lines: Mapping[int, Mapping[str, Any]]) -> dict[int, dict[str, float]]:
    """Average the lines of each epoch; the steps since the line before are a line's weight."""
    sums: dict[int, dict[str, tuple[float, int]]] = {}
    before = 0
    for step, line in sorted(lines.items()):
        here = sums.setdefault(_epoch(line), {})
        for name, value in _numbers(line).items():
            total, steps = here.get(name, (0.0, 0))
            here[name] = (total + value * (step - before), steps + step - before)
        before = step
    return {
        epoch: {name: total / steps for name, (total, steps) in metrics.items() if steps}
        for epoch, metrics in sums.items()
    }


def _epoch(line: Mapping[str, Any]) -> int:
    return max(1, math.ceil(float(line["epoch"]) - _ROUNDING))


def _numbers(line: Mapping[str, Any]) -> dict[str, float]:
    return {
        name: value
        for name, value in line.items()
        if name not in _PLACE and isinstance(value, int | float) and math.isfinite(value)
    }
