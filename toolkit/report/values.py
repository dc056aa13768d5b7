"""What a run folder says, as values: what is not there (yet) is empty or None."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.artifacts.epochs import Epoch
from toolkit.attempts.goodput import Goodput
from toolkit.attempts.held import Held
from toolkit.report.formats import NOT_SCORES, is_of_slice
from toolkit.report.slices import SliceReport
from toolkit.usage.values import RankUsage

#: One split's metrics: columns of equal length ordered by step; None where a line lacks the metric.
Columns = Mapping[str, tuple[float | None, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The evaluation whose checkpoint was kept as best."""

    step: int
    metric: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One start of the run; times in seconds since 1970, None for what has not happened yet."""

    attempt: int
    job_id: str | None = None
    restart: int = 0
    hosts: tuple[str, ...] = ()
    world_size: int | None = None
    device: str | None = None
    time_start: float | None = None
    time_end: float | None = None
    first_step: int | None = None
    last_step: int | None = None
    why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The first failing rank's error."""

    rank: int | None
    host: str | None
    phase: str | None
    step: int | None
    error: str
    message: str
    advice: str
    traceback: str


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What scores are of: a split, or the whole texts of one that were folded into several samples.

    name   what files are called by
    level  text or fragment; None where the files do not tell
    """

    name: str
    split: str
    level: str | None = None

    @property
    def title(self) -> str:
        """The split, and the level where there are two of it."""
        if self.name != self.split:
            return f"{self.split}, whole texts"
        return f"{self.split}, fragments" if self.level == "fragment" else self.split


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassScore:
    """One class: scores between 0 and 1, support as the number of samples that truly are of it."""

    label: str
    precision: float
    recall: float
    f1: float
    support: int
    average_precision: float | None = None
    roc_auc: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassReport:
    """Scores per class of one view; `confusion[true][predicted]` counts samples.

    The areas are those of the second of two classes, or the means over more.
    """

    view: View
    labels: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]
    classes: tuple[ClassScore, ...]
    accuracy: float | None
    macro_precision: float | None
    macro_recall: float | None
    macro_f1: float | None
    weighted_precision: float | None = None
    weighted_recall: float | None = None
    weighted_f1: float | None = None
    mcc: float | None = None
    roc_auc: float | None = None
    average_precision: float | None = None

    @property
    def samples(self) -> int:
        return sum(map(sum, self.confusion))

    @property
    def shares(self) -> tuple[tuple[float | None, ...], ...]:
        """The confusion matrix as shares of the true class; None in the row of a class without samples."""
        return tuple(
            tuple(value / total if total else None for value in row)
            for row, total in zip(self.confusion, map(sum, self.confusion), strict=True)
        )

    def confusions(self, limit: int) -> list[tuple[str, str, int]]:
        """Return the most frequent mistakes as (true label, predicted label, samples)."""
        found = [
            (true, predicted, samples)
            for row, true in enumerate(self.labels)
            for column, predicted in enumerate(self.labels)
            if row != column and (samples := self.confusion[row][column])
        ]
        return sorted(found, key=lambda mistake: -mistake[2])[:limit]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingPoint:
    """What was asked for (`at`), and what the threshold gives; None where none reaches it."""

    at: float
    threshold: float | None
    precision: float
    recall: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoClassCurves:
    """ROC and precision over recall of the `positive` one of two classes, as x and y of points."""

    view: View
    positive: str
    positives: int
    negatives: int
    roc_auc: float | None
    average_precision: float | None
    roc: tuple[tuple[float, ...], tuple[float, ...]]
    precision_recall: tuple[tuple[float, ...], tuple[float, ...]]
    recall_at_precision: tuple[OperatingPoint, ...]
    precision_at_recall: tuple[OperatingPoint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelCounts:
    """How many samples, and how many texts, of each label are in each split."""

    labels: tuple[str, ...]
    samples: dict[str, tuple[int, ...]]
    texts: dict[str, tuple[int, ...]]

    @property
    def folded(self) -> bool:
        """Whether texts are in several samples."""
        return self.samples != self.texts


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """What a run folder says.

    state    finished, failed, unfinished (whether it lives now, its files cannot tell), or pending
    resources  as submitted at last; those of the config where nobody has submitted it
    seconds  time trained, over all attempts
    scores   last known metrics of each split
    curves   metrics of each split over the steps
    by_epoch loss and scores of each epoch
    labels   how the labels are distributed; None where no file tells
    classes  scores per class of each view that has them
    two_classes  curves of each view of two classes
    slices   scores of slices by split, of runs that have them
    scored   of an evaluation: which data, and whose weights; else empty
    as_of    time of the newest line of metrics or events, in seconds since 1970
    goodput  where the time went
    starts   where that of each start went, and what it held meanwhile
    usage    what the ranks took of their machines, by start and rank; of the newest starts
    """

    run_id: str
    state: str
    name: str
    config: dict[str, Any]
    resources: dict[str, Any]
    step: int | None
    epoch: float | None
    epochs: int | None
    seconds: float | None
    samples_per_s: float | None
    tokens_per_s: float | None
    best: Best | None
    scores: dict[str, dict[str, float | None]]
    curves: dict[str, Columns]
    by_epoch: tuple[Epoch, ...]
    labels: LabelCounts | None
    classes: dict[str, ClassReport]
    two_classes: dict[str, TwoClassCurves]
    slices: dict[str, SliceReport]
    attempts: tuple[Attempt, ...]
    hosts: tuple[str, ...]
    world_size: int | None
    device: str | None
    events: dict[str, int]
    failure: Failure | None
    scored: str
    as_of: float | None
    goodput: Goodput
    starts: tuple[Held, ...] = ()
    usage: tuple[RankUsage, ...] = ()

    def points(self, split: str, metric: str) -> tuple[list[float], list[float]]:
        """Return steps and values of one curve, leaving out what is missing or not finite."""
        columns = self.curves.get(split, {})
        pairs = [
            (step, value)
            for step, value in zip(columns.get("step", ()), columns.get(metric, ()), strict=False)
            if step is not None and value is not None and math.isfinite(value)
        ]
        return [step for step, _ in pairs], [value for _, value in pairs]


def to_json(summary: RunSummary) -> dict[str, Any]:
    """Return the summary as plain JSON values; a number that is not finite becomes null."""
    document = _jsonable(dataclasses.asdict(summary))
    assert isinstance(document, dict)
    return document | {
        "slices": {split: report.to_json() for split, report in summary.slices.items()},
        "starts": [_start(start) for start in summary.starts],
        # Without their histories, which the usage files keep.
        "usage": [_without(rank, "history") for rank in document["usage"]],
    }


def _without(document: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != key}


def _start(start: Held) -> dict[str, Any]:
    spent = start.time.spent
    return {
        "attempt": start.time.attempt,
        "begin": start.time.begin,
        "end": start.time.end,
        **dataclasses.asdict(spent),
        "goodput": spent.share,
        "gpus": start.gpus,
        "cpus": start.cpus,
        "gpu_hours": start.gpu_hours.held,
        "useful_gpu_hours": start.gpu_hours.useful,
        "cpu_hours": start.cpu_hours.held,
        "useful_cpu_hours": start.cpu_hours.useful,
    }


#: Metrics that are shown by epoch, the first ones being the main ones.
ACCURACIES = ("accuracy", "word_accuracy", "token_accuracy", "sequence_accuracy", "f1")


def score_names(summaries: Iterable[RunSummary]) -> list[str]:
    """Return the metrics that measure quality, in the order in which they first appear.

    Those of slices have tables of their own.
    """
    found = (name for summary in summaries for scores in summary.scores.values() for name in scores)
    return [name for name in dict.fromkeys(found) if name not in NOT_SCORES and not is_of_slice(name)]


def main_metric(summary: RunSummary) -> str | None:
    """Return the metric that is shown beside the loss: the one that picks the best, or the first."""
    chosen = wanted_metric(summary.config)[0]
    names = [name for name in score_names([summary]) if name != "loss"]
    if chosen in names or (is_of_slice(chosen) and any(chosen in each for each in summary.scores.values())):
        return chosen
    return "accuracy" if "accuracy" in names else next(iter(names), None)


def config_differences(summaries: Sequence[RunSummary]) -> dict[str, tuple[Any, ...]]:
    """Return the config keys whose values differ between runs, each with one value per run."""
    flat = [dict(_flatten(summary.config)) for summary in summaries]
    keys = dict.fromkeys(key for config in flat for key in config)
    values = {key: tuple(config.get(key) for config in flat) for key in keys}
    # repr, because 1 == True and 1 == 1.0, which are different things to have written.
    return {key: row for key, row in values.items() if len({repr(value) for value in row}) > 1}


def wanted_metric(config: Mapping[str, Any]) -> tuple[str, str]:
    """Return the metric of the validation set that picks the best, and min or max."""
    metric, _, direction = str(section(config, "evaluation").get("metric", "loss:min")).partition(":")
    return metric, direction or "min"


def section(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return one section of a config; empty where it is missing."""
    section = config.get(name)
    return section if isinstance(section, dict) else {}


def _jsonable(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _flatten(value: Any, prefix: str = "") -> Iterable[tuple[str, Any]]:
    if not isinstance(value, dict):
        yield prefix, value
        return
    for key, item in value.items():
        yield from _flatten(item, f"{prefix}.{key}" if prefix else str(key))
