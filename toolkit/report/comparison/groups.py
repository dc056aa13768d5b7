"""Runs that differ only in their seed, and the mean and deviation of their scores."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolkit.config.fields import keys_of, limits
from toolkit.config.schema import Train
from toolkit.config.serialize import flat, with_added_keys
from toolkit.report import formats
from toolkit.report.model import RunSummary, config_differences
from toolkit.report.run import text
from toolkit.workload import Metric

#: Keys that change no result, or in which the runs of a group differ.
_SAME_WITHOUT = ("name", "seed", "resources", "checkpoint")
#: Keys of `train` that change no result.
_FREE = frozenset(each.name for each in keys_of(Train) if not limits(each).identity)
_LABEL_KEYS = 4
_LABEL_WIDTH = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """One score over several runs: their mean, and their sample standard deviation if there are two."""

    mean: float
    deviation: float | None
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Runs of one setting, one per seed. The means cover only finished runs."""

    label: str
    runs: tuple[RunSummary, ...]

    @property
    def finished(self) -> tuple[RunSummary, ...]:
        return tuple(run for run in self.runs if run.state == "finished")

    @property
    def seeds(self) -> tuple[Any, ...]:
        return tuple(run.config.get("seed") for run in self.runs)

    def spread(self, split: str, metric: str) -> Spread | None:
        """Return mean and deviation of one score; None if no finished run has it."""
        values = [run.scores.get(split, {}).get(metric) for run in self.finished]
        return spread(value for value in values if value is not None)


def spread(values: Iterable[float]) -> Spread | None:
    """Return mean and sample standard deviation (over n - 1) of the values that are finite."""
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return None
    deviation = statistics.stdev(known) if len(known) > 1 else None
    return Spread(mean=statistics.fmean(known), deviation=deviation, runs=len(known))


def groups(summaries: Sequence[RunSummary]) -> list[Group]:
    """Return the settings of these runs in the order of their first appearance."""
    found: dict[str, dict[Any, RunSummary]] = {}
    for summary in summaries:
        values = flat(with_added_keys(summary.config))
        setting = [(key, values[key]) for key in sorted(values) if not _is_free(key)]
        seed = summary.config.get("seed")
        # Runs without a seed, such as those of a program, repeat no other run.
        alone = summary.run_id if seed is None else None
        of_seeds = found.setdefault(repr((setting, summary.code, alone)), {})
        # Two runs with one seed have equal scores, so only one of them counts.
        if summary.state == "finished" and of_seeds.get(seed, summary).state != "finished":
            of_seeds[seed] = summary
        of_seeds.setdefault(seed, summary)
    members = [tuple(of_seeds.values()) for of_seeds in found.values()]
    firsts = [runs[0] for runs in members]
    labels = _labels(firsts)
    return [Group(label=label, runs=runs) for label, runs in zip(labels, members, strict=True)]


def band(group: Group, metric: str) -> Mapping[float, Spread]:
    """Mean and deviation over the finished runs of a setting; if none has finished, over all runs.

    By step, for the steps at which all of these runs were scored.
    """
    curves = [
        dict(zip(*run.points("validation", metric), strict=True))
        for run in group.finished or group.runs
        if run.points("validation", metric)[0]
    ]
    steps = [step for step in (curves[0] if curves else ()) if all(step in curve for curve in curves)]
    spreads = ((step, spread(curve[step] for curve in curves)) for step in steps)
    return {step: each for step, each in spreads if each is not None}


def has_seeds(found: Sequence[Group]) -> bool:
    """Whether some setting has several runs, so that a mean is meaningful."""
    return any(len(group.runs) > 1 for group in found)


def spread_text(metric: Metric | None, found: Spread | None) -> str:
    """Return mean ± deviation for people, in the metric's own form."""
    if found is None:
        return formats.NOTHING
    if found.deviation is None:
        return formats.score(metric, found.mean)
    if formats.is_share(metric):
        return f"{100 * found.mean:.2f} ± {100 * found.deviation:.2f} %"
    return f"{formats.score(metric, found.mean)} ± {formats.score(metric, found.deviation)}"


def _is_free(key: str) -> bool:
    section, _, name = key.partition(".")
    return section in _SAME_WITHOUT or (section == "train" and name in _FREE)


def _labels(firsts: Sequence[RunSummary]) -> list[str]:
    """Name each setting by the keys in which the settings differ; without such keys, by the run's name."""
    keys = {key: values for key, values in config_differences(firsts).items() if not _is_free(key)}
    if not keys:
        return _distinct([summary.name for summary in firsts], firsts)
    shown = list(formats.short_names(keys).items())[:_LABEL_KEYS]
    more = ", …" if len(keys) > len(shown) else ""
    labels = []
    for place in range(len(firsts)):
        values = ", ".join(f"{name}={text.setting(keys[key][place])}" for key, name in shown)
        labels.append(formats.one_line(values + more, _LABEL_WIDTH))
    return _distinct(labels, firsts)


def _distinct(labels: Sequence[str], firsts: Sequence[RunSummary]) -> list[str]:
    """The labels, with a run where several are equal: as of settings that differ in the user's code alone."""
    count = Counter(labels)
    return [
        label if count[label] == 1 else f"{label} ({summary.run_id})"
        for label, summary in zip(labels, firsts, strict=True)
    ]
