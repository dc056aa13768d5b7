"""The content of a run folder, as values: missing values are empty or None."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.config.serialize import flat, with_added_keys
from toolkit.files import json_value
from toolkit.monitoring.usage.values import RankUsage
from toolkit.registry import declared_metrics, metric_of
from toolkit.report import formats
from toolkit.report.formats import NOT_SCORES, is_of_part
from toolkit.report.plotting.curves import Columns, points
from toolkit.report.task_report import TaskReport
from toolkit.run.attempts.goodput import Goodput
from toolkit.run.attempts.records import AttemptRecord
from toolkit.run.attempts.resource_hours import AttemptUsage
from toolkit.run.records.epoch_metrics import Epoch
from toolkit.run.records.failures import FailureRecord
from toolkit.run.records.headline import main_name
from toolkit.workload import LOSS, Goal, Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The evaluation whose checkpoint was kept as best; the value is None if it is unknown or not finite.

    is_marked  false if no checkpoint was marked as best: it is then the evaluation with the lowest loss
    """

    step: int
    metric: str
    value: float | None
    is_marked: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """The content of a run folder.

    state    finished, failed, unfinished (its files do not show whether it is live), or pending
    resources  of the last submission; of the config if it was never submitted
    seconds  sum over the attempts, without imports, final scores and drawing
    scores   last known metrics of each split; of training, means over an epoch
    of_best  names of the validation scores that a program of the user's own logged with its best checkpoint
    train_epoch  that epoch, counted from 1; None if no lines of training have it
    curves   metrics of each split over the steps
    by_epoch loss and scores of each epoch
    own      what the task adds; None if the task kind is not installed
    code     a digest of the code that the run keeps besides the toolkit's own; else empty
    new_code edited files that the run took on its way, and from which step on
    scored   of an evaluation: which data, and whose weights; else empty
    as_of    time of the newest line of metrics or events, or of the last heartbeat, in seconds since 1970
    goodput  the run's time by purpose
    attempt_usage  time by purpose, GPUs and CPUs of each attempt
    usage    resource usage of the ranks, by attempt and rank; of the newest attempts
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
    train_epoch: int | None
    curves: dict[str, Columns]
    by_epoch: tuple[Epoch, ...]
    attempts: tuple[AttemptRecord, ...]
    hosts: tuple[str, ...]
    world_size: int | None
    device: str | None
    events: dict[str, int]
    new_code: tuple[str, ...]
    failure: FailureRecord | None
    scored: str
    as_of: float | None
    goodput: Goodput
    attempt_usage: tuple[AttemptUsage, ...] = ()
    usage: tuple[RankUsage, ...] = ()
    own: TaskReport | None = None
    code: str = ""
    of_best: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """The task kind."""
        return task_kind(self.config)

    def metric(self, name: str) -> Metric | None:
        """Return a metric as the run's task declares it; None if it does not."""
        return metric_of(name, section(self.config, "task"))

    def title(self, metric: str) -> str:
        """Return a metric's name for people."""
        return formats.metric_title(metric, self.metric(metric))

    def score(self, metric: str, value: float | None) -> str:
        """Return a metric's value for people."""
        return formats.score(self.metric(metric), value)

    def points(self, split: str, metric: str) -> tuple[list[float], list[float]]:
        """Return steps and values of one curve, without missing and non-finite values."""
        return points(self.curves, split, metric)


def to_json(summary: RunSummary) -> dict[str, Any]:
    """Return the summary as plain JSON values; a number that is not finite becomes null."""
    document = json_value(dataclasses.asdict(dataclasses.replace(summary, own=None)))
    del document["own"]
    for rank in document["usage"]:
        # The usage files keep it.
        del rank["history"]
    own = {} if summary.own is None else json_value(summary.own.to_json())
    # The task's keys come last, but do not replace others.
    starts = [attempt_json(attempt) for attempt in summary.attempt_usage]
    return {**document, **own, **document, "starts": starts}


def attempt_json(attempt: AttemptUsage) -> dict[str, Any]:
    """Return the use of one attempt."""
    spent = attempt.time.spent
    return {
        "attempt": attempt.time.attempt,
        "begin": attempt.time.begin,
        "end": attempt.time.end,
        **dataclasses.asdict(spent),
        "goodput": spent.share,
        "gpus": attempt.gpus,
        "cpus": attempt.cpus,
        "gpu_hours": attempt.gpu_hours.allocated,
        "useful_gpu_hours": attempt.gpu_hours.useful,
        "cpu_hours": attempt.cpu_hours.allocated,
        "useful_cpu_hours": attempt.cpu_hours.useful,
    }


def score_names(summaries: Iterable[RunSummary]) -> list[str]:
    """Return the metrics that measure quality, in the order in which they first appear.

    Metrics of parts of the data are left out if the report of the task shows them.
    """
    found = (
        name
        for summary in summaries
        for scores in summary.scores.values()
        for name in scores
        if not (summary.own is not None and summary.own.shows_parts and is_of_part(name))
    )
    return [name for name in dict.fromkeys(found) if name not in NOT_SCORES]


def main_metric(summary: RunSummary) -> str | None:
    """Return the metric that is shown beside the loss: the one that picks the best, or the task's first."""
    chosen = wanted_metric(summary.config)[0]
    if chosen != LOSS.name and any(chosen in scores for scores in summary.scores.values()):
        return chosen
    known = score_names([summary])
    declared = (name for name in declared_metrics(section(summary.config, "task")) if name in known)
    # Metrics that only training has come last.
    splits = sorted(summary.scores, key=lambda split: split == "train")
    measured = (name for split in splits for name in summary.scores[split] if name in known)
    found = main_name([*declared, *measured])
    return None if found == LOSS.name else found


def config_differences(summaries: Sequence[RunSummary]) -> dict[str, tuple[Any, ...]]:
    """Return the config keys whose values differ between runs, each with one value per run."""
    configs = [flat(with_added_keys(summary.config)) for summary in summaries]
    keys = dict.fromkeys(key for config in configs for key in config)
    values = {key: tuple(config.get(key) for config in configs) for key in keys}
    # repr, because 1 == True and 1 == 1.0, but they are different values in a config.
    return {key: row for key, row in values.items() if len({repr(value) for value in row}) > 1}


_GOALS: Mapping[str, Goal] = {"min": "min", "max": "max"}


def wanted_metric(config: Mapping[str, Any]) -> tuple[str, Goal | None]:
    """Return the metric of the validation set that picks the best, and its goal."""
    metric = str(section(config, "evaluation").get("metric", LOSS.full_name)).partition(":")[0]
    return metric, goal_of(config, metric)


def goal_of(config: Mapping[str, Any], metric: str) -> Goal | None:
    """Return whether a lower or higher metric is better: as the run recorded it, else as its task declares.

    None if neither declares it: such a metric cannot rank runs.
    """
    wanted, _, recorded = str(section(config, "evaluation").get("metric", "")).partition(":")
    if metric == wanted and recorded in _GOALS:
        return _GOALS[recorded]
    known = metric_of(metric, section(config, "task"))
    return known.goal if known is not None else None


def task_kind(config: Mapping[str, Any]) -> str:
    """Return the kind of a config's task; empty if it has none."""
    return str(section(config, "task").get("kind", ""))


def shared_metric(summaries: Iterable[RunSummary], name: str) -> Metric | None:
    """Return the metric of this name if all tasks that declare it agree; else None."""
    found = {metric for each in summaries if (metric := each.metric(name)) is not None}
    return found.pop() if len(found) == 1 else None


def shared_title(summaries: Iterable[RunSummary], name: str) -> str:
    """Return a metric's name for people, for views of several runs."""
    return formats.metric_title(name, shared_metric(summaries, name))


def section(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return one section of a config; empty if it is missing."""
    section = config.get(name)
    return section if isinstance(section, dict) else {}
