"""The lines of metrics.jsonl, summarized by epoch. Imports little, because the report uses it too."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.system.output.sanitize import number

#: Key of the number of units (samples, words or tokens, as the task counts) behind a training line's means.
COUNT = "count"
#: Keys of a line that tell its place; the others are measurements.
PLACE = ("time", "step", "epoch", "split")
#: End of the names of speeds.
_SPEED = "_per_s"
#: Rounding may place an epoch's last step slightly beyond its end.
_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """One pass over the training set, counted from 1.

    training    means of its lines, weighted by count, or by steps if a line has no count; of speeds, means
                weighted by time
    validation  the last score of each metric in it; empty without an evaluation

    NaN stands for a score that is not finite, and for the mean of values that are not all finite.
    """

    epoch: int
    training: Mapping[str, float]
    validation: Mapping[str, float]


def merged(lines: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Join the lines of one step and split, at the place of the last; of two values the later one counts."""
    found: dict[Any, dict[str, Any]] = {}
    for index, line in enumerate(lines):
        has_place = "step" in line and "split" in line
        place = (str(line["step"]), str(line["split"])) if has_place else index
        joined = found.pop(place, {})
        # A line without an epoch has null, which replaces nothing.
        epoch = {} if line.get("epoch") is not None or "epoch" not in joined else {"epoch": joined["epoch"]}
        found[place] = {**joined, **line, **epoch}
    return list(found.values())


def by_epoch(lines: Iterable[Mapping[str, Any]]) -> tuple[Epoch, ...]:
    """Summarize lines of metrics by epoch; a line belongs to the epoch in which it was written.

    Lines of one step are joined. The last epoch may be incomplete.
    """
    splits: dict[str, dict[int, Mapping[str, Any]]] = {"train": {}, "validation": {}}
    for line in merged(lines):
        if line.get("split") in splits and line.get("epoch") is not None and "step" in line:
            splits[line["split"]][line["step"]] = line
    training = _means(splits["train"])
    validation: dict[int, dict[str, float]] = {}
    for _, scored in sorted(splits["validation"].items()):
        epoch = _epoch(scored)
        validation[epoch] = validation.get(epoch, {}) | _numbers(scored)
    return tuple(
        Epoch(epoch=epoch, training=training.get(epoch, {}), validation=validation.get(epoch, {}))
        for epoch in sorted({*training, *validation})
    )


def trained(epochs: Sequence[Epoch], done: float) -> Epoch | None:
    """The last completed epoch; the current one if none is complete; None without training lines."""
    known = [epoch for epoch in epochs if epoch.training]
    whole = [epoch for epoch in known if epoch.epoch <= done + _ROUNDING]
    return next(iter(whole[-1:] or known[:1]), None)


def _means(lines: Mapping[int, Mapping[str, Any]]) -> dict[int, dict[str, float]]:
    """Average the lines of each epoch."""
    found: dict[int, list[tuple[Mapping[str, Any], int]]] = {}
    before = 0
    for step, line in sorted(lines.items()):
        found.setdefault(_epoch(line), []).append((line, step - before))
        before = step
    return {epoch: _mean(weighted) for epoch, weighted in found.items()}


def _mean(lines: Sequence[tuple[Mapping[str, Any], int]]) -> dict[str, float]:
    """Average (line, steps) pairs, weighted by count if all lines have one, else by steps."""
    has_counts = all(number(line.get(COUNT)) is not None for line, _ in lines)
    weighted: dict[str, list[tuple[float, float]]] = {}
    for line, steps in lines:
        if not (weight := line[COUNT] if has_counts else steps):
            continue
        for name, value in _numbers(line).items():
            weighted.setdefault(name, []).append((value, weight))
    return {name: _mean_of(name, values) for name, values in weighted.items()}


def _mean_of(name: str, values: Sequence[tuple[float, float]]) -> float:
    """Average (value, weight) pairs; a speed is weighted by time, which is the weight divided by the speed.

    This time is exact if both count the same, such as samples; otherwise it is an estimate. A speed of 0, to
    which a low one is rounded, says nothing about the time, and is left out.
    """
    timed = [(value, weight) for value, weight in values if value]
    if name.endswith(_SPEED) and timed and all(0 < value < math.inf for value, _ in timed):
        return sum(weight for _, weight in timed) / sum(weight / value for value, weight in timed)
    return sum(value * weight for value, weight in values) / sum(weight for _, weight in values)


def _epoch(line: Mapping[str, Any]) -> int:
    return max(1, math.ceil(float(line["epoch"]) - _ROUNDING))


def _numbers(line: Mapping[str, Any]) -> dict[str, float]:
    """The measurements of a line; null stands for a value that was not finite."""
    measured = {name: value for name, value in line.items() if name not in (*PLACE, COUNT)}
    values = {name: math.nan if value is None else value for name, value in measured.items()}
    return {name: value for name, value in values.items() if isinstance(value, int | float)}
