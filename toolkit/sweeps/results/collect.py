"""Results of the runs of a sweep: ranked by one metric, and grouped over seeds."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from statistics import fmean, stdev
from typing import Any

from toolkit.config.composition.yaml_files import Unreadable, parse
from toolkit.errors import DataError, UserError
from toolkit.files import read_json
from toolkit.registry import metric_of
from toolkit.report import formats
from toolkit.report.formats import clean
from toolkit.report.model import section
from toolkit.report.reading import read_config
from toolkit.sweeps.folder import Member, Record, SweepDir
from toolkit.sweeps.results.ranking import declared_goal, with_split
from toolkit.sweeps.sweep import Point
from toolkit.system.output.sanitize import number
from toolkit.workload import Metric

#: Means are taken over the values of this key.
SEED = "seed"
FINISHED = "finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One run. `value` is its metric with the weights of `step`; None if unfinished or without the metric."""

    run_id: str
    values: Point
    state: str
    value: float | None = None
    step: int | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Runs that differ only in their seed: mean and sample standard deviation; sd is None for one run."""

    values: Point
    runs: int
    mean: float
    sd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """All runs, the best first, runs without a value last; groups if the seed is a key of the sweep.

    declared   the metric, as the task declares it
    lacking    why the finished runs are not ranked; empty if one has the metric
    """

    name: str
    config: str | None
    metric: str
    goal: str
    keys: tuple[str, ...]
    spaces: Mapping[str, str]
    log: tuple[str, ...]
    rows: tuple[Result, ...]
    groups: tuple[Group, ...]
    declared: Metric | None = None
    lacking: str = ""

    def score(self, value: float | None) -> str:
        """Return a value of the metric for people."""
        return formats.score(self.declared, value)

    @property
    def ranked(self) -> tuple[Result, ...]:
        """The runs that have a value."""
        return tuple(row for row in self.rows if row.value is not None)

    @property
    def finished(self) -> str:
        """How many runs have finished, and how many of them have the metric, as text."""
        finished = sum(row.state == FINISHED for row in self.rows)
        lacking = f", {len(self.ranked)} with {self.metric}" if len(self.ranked) < finished else ""
        return f"{finished} of {len(self.rows)} finished{lacking}"

    @property
    def best(self) -> Result | None:
        return next(iter(self.ranked), None)

    @property
    def why_no_best(self) -> str:
        """Text in place of the best run."""
        if any(row.state == FINISHED for row in self.rows):
            return self.lacking or f"no finished run has a value of {self.metric}"
        return "no run has finished yet"

    @property
    def metric_name(self) -> str:
        """The metric without its split."""
        return self.metric.partition(".")[2]


def read_results(
    sweep: SweepDir,
    record: Record,
    states: Mapping[str, str],
    *,
    metric: str | None = None,
    goal: str | None = None,
) -> Results:
    """Read the result of each member; a damaged file affects only the state of its run.

    states   by run id, for unfinished runs
    metric, goal   replace the sweep's own; another metric without a goal gets its declared goal
    Raises UserError if finished runs have other metrics than the given one, or if its goal is not declared.
    """
    is_given, metric = metric is not None, record.metric if metric is None else with_split(metric)
    found = [_result(sweep, each, states.get(each.run_id, "unknown"), metric) for each in record.members]
    known = sorted({clean(name) for _, scores in found for name in scores})
    lacking = ""
    if known and metric not in known:
        has = f"they have {', '.join(known)}"
        lacking = f"no finished run has the metric {metric}; {has}: name one of these with --metric"
        if is_given:
            raise UserError(lacking)
    task = task_of(sweep, record)
    way = goal or (record.goal if metric == record.metric else declared_goal(metric, task))
    loss = f"{metric.partition('.')[0]}.loss"
    lows = {row.run_id: number(scores.get(loss)) for row, scores in found}
    losses = {run_id: math.inf if low is None else low for run_id, low in lows.items()}
    rows = sorted((row for row, _ in found), key=lambda row: _order(row.value, losses[row.run_id], way))
    keys = tuple(dict.fromkeys(key for each in record.members for key in each.values))
    return Results(
        name=record.name,
        config=record.file,
        metric=metric,
        goal=way,
        keys=keys,
        spaces=record.spaces,
        log=record.log,
        rows=tuple(rows),
        groups=_groups(rows, losses, way) if SEED in keys else (),
        declared=metric_of(metric.partition(".")[2], task),
        lacking=lacking,
    )


def task_of(sweep: SweepDir, record: Record) -> Mapping[str, Any]:
    """The task section of the first readable run; else the task kind that the sweep recorded."""
    for each in record.members:
        with suppress(DataError, OSError):
            if task := section(read_config(sweep.run(each.run_id).config), "task"):
                return task
    return {"kind": record.task}


def _result(sweep: SweepDir, member: Member, state: str, metric: str) -> tuple[Result, Mapping[str, Any]]:
    """A run, and its metrics by SPLIT.METRIC."""
    values = {clean(key): clean(value) for key, value in member.values.items()}
    try:
        known = read_json(sweep.run(member.run_id).result)
        if known is None:
            return Result(run_id=member.run_id, values=values, state=state), {}
        scores = {
            f"{split}.{name}": score
            for split, metrics in known["metrics"].items()
            for name, score in metrics.items()
        }
        # Training metrics belong to the last steps, and not every run has a best checkpoint.
        scored = known if metric.startswith("train.") else known.get("best") or known
        marked = known.get("best_checkpoint") or {}
        if metric in [f"validation.{name}" for name in marked.get("validation", ())]:
            scored = marked
        row = Result(
            run_id=member.run_id,
            values=values,
            state=FINISHED,
            value=number(scores.get(metric)),
            step=scored.get("step"),
            seconds=known.get("seconds"),
        )
        return row, scores
    except (ValueError, OSError, KeyError, AttributeError, TypeError):
        return Result(run_id=member.run_id, values=values, state="result.json is damaged"), {}


def _order(value: float | None, loss: float, goal: str) -> tuple[float, float]:
    """Return the place in the ranking as a key to sort by. If metrics are equal, the lower loss is better."""
    if value is None:
        return math.inf, 0.0
    return -value if goal == "max" else value, loss


def _groups(rows: Sequence[Result], losses: Mapping[str, float], goal: str) -> tuple[Group, ...]:
    by_values: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = {}
    for row in rows:
        if row.value is not None:
            by_values.setdefault(without_seed(row.values), []).append((row.value, losses[row.run_id]))
    groups: list[tuple[Group, float]] = []
    for others, pairs in by_values.items():
        values, of_values = zip(*pairs, strict=True)
        sd = stdev(values) if len(values) > 1 else None
        group = Group(values=dict(others), runs=len(values), mean=fmean(values), sd=sd)
        groups.append((group, fmean(of_values)))
    return tuple(group for group, _ in sorted(groups, key=lambda each: _order(each[0].mean, each[1], goal)))


def without_seed(values: Point) -> tuple[tuple[str, str], ...]:
    """Return the values without the seed: equal for runs that differ only in their seeds."""
    return tuple((key, value) for key, value in values.items() if key != SEED)


def to_json(results: Results) -> dict[str, Any]:
    """Return the output of --json, which is also report.json."""
    best = results.best
    document = {**asdict(results), "best": asdict(best) if best else None}
    for each in (*document["rows"], *document["groups"], document["best"] or {"values": {}}):
        each["values"] = {key: meant(text) for key, text in each["values"].items()}
    del document["declared"], document["lacking"]
    return document


def meant(text: str) -> Any:
    """Parse a text as YAML; return the text itself if it is invalid or its value is not JSON."""
    try:
        json.dumps(found := parse(text).value, allow_nan=False)
    except (Unreadable, ValueError, TypeError):
        return text
    return found
