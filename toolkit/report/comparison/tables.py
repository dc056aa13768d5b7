"""The tables of several runs side by side."""

from __future__ import annotations

from collections.abc import Sequence

from toolkit.registry import brief_metrics
from toolkit.report import formats
from toolkit.report.blocks import Table, table, turned
from toolkit.report.comparison.groups import groups, spread_text
from toolkit.report.comparison.reading import Compared
from toolkit.report.model import (
    RunSummary,
    config_differences,
    goal_of,
    main_metric,
    score_names,
    shared_metric,
    shared_title,
)
from toolkit.report.run import text as facts
from toolkit.report.time_and_resources.times import seconds_text
from toolkit.run.attempts.resource_hours import total_cpu_hours, total_gpu_hours

#: With more runs, their names are in rows, because their columns would not fit.
COLUMNS = 5
_DEVIATION = "mean ± sample standard deviation of the finished runs, one of each seed"


def runs_table(compared: Compared) -> Table:
    """Return one row for each run with the metrics that matter most: state, step, best, scores, time."""
    runs = compared.runs
    names, split = compared_metrics(runs), facts.compared_split(runs)
    titles = [f"{split} {shared_title(runs, name)}" for name in names]
    rows = [
        (
            run.run_id,
            run.state,
            formats.count(run.step),
            facts.best_words(run, short=True) or formats.NOTHING,
            *(run.score(name, run.scores.get(split, {}).get(name)) for name in names),
            formats.duration(run.seconds),
        )
        for run in runs
    ]
    head = ["run", "state", "step", facts.best_title(runs), *titles, "time"]
    bad = [(run_id, "unreadable", *[formats.NOTHING] * (len(head) - 2)) for run_id in compared.unreadable]
    best = [
        (place, column)
        for column, name in enumerate(names, start=4)
        for place in best_places(runs, name, [run.scores.get(split, {}).get(name) for run in runs])
    ]
    note = "\n".join(f"{run_id}: {why}" for run_id, why in compared.unreadable.items())
    last = len(head) - 1
    # Time, step, best; then the scores from the right, except the first two.
    optional = (last, 2, 3, *range(last - 1, 5, -1))
    return table("Runs", head, [*rows, *bad], texts=2, best=frozenset(best), optional=optional, note=note)


def scores_table(runs: Sequence[RunSummary]) -> Table:
    """Return every score of the compared split: one row for each run, or one column if there are few runs."""
    split = facts.compared_split(runs)
    names = [name for name in score_names(runs) if any(name in run.scores.get(split, {}) for run in runs)]
    values = {name: [run.scores.get(split, {}).get(name) for run in runs] for name in names}
    rows = [
        (run.run_id, *(run.score(name, values[name][place]) for name in names))
        for place, run in enumerate(runs)
    ]
    best = frozenset(
        (place, column)
        for column, name in enumerate(names, start=1)
        for place in best_places(runs, name, values[name])
    )
    made = table(f"Scores ({split})", ["run", *(shared_title(runs, name) for name in names)], rows, best=best)
    return turned(made, "metric") if len(runs) <= COLUMNS else made


def groups_table(runs: Sequence[RunSummary]) -> Table:
    """Return one row for each setting, with the scores of its runs over their seeds."""
    found = groups(runs)
    names, split = compared_metrics(runs), facts.compared_split(runs)
    spreads = {name: [group.spread(split, name) for group in found] for name in names}
    rows = [
        (
            group.label,
            f"{len(group.finished)}" + (f" of {len(group.runs)}" if group.finished != group.runs else ""),
            *(spread_text(group.runs[0].metric(name), spreads[name][place]) for name in names),
        )
        for place, group in enumerate(found)
    ]
    best = frozenset(
        (place, column)
        for column, name in enumerate(names, start=2)
        for place in best_places(runs, name, [each.mean if each else None for each in spreads[name]])
    )
    titles = (f"{split} {shared_title(runs, name)}" for name in names)
    return table("Means over seeds", ["setting", "n", *titles], rows, best=best, note=_DEVIATION)


def differences_table(runs: Sequence[RunSummary]) -> Table:
    """Return one row for each key that differs, grouped by section, with the value of each run."""
    differences = config_differences(runs)
    sections = [key.partition(".")[0] for key in differences]
    # Sections in their order, but sections that change no result last.
    keys = sorted(differences, key=lambda key: _place(key.partition(".")[0], sections))
    rows = [(key, *map(facts.setting, differences[key])) for key in keys]
    firsts = [key.partition(".")[0] for key in keys]
    parts = frozenset(place for place in range(1, len(keys)) if firsts[place] != firsts[place - 1])
    head = ["key", *(run.run_id for run in runs)]
    made = table("What differs", head, rows, parts=parts)
    return turned(made, "run") if len(runs) > COLUMNS and len(keys) < len(runs) else made


def _place(section: str, sections: Sequence[str]) -> tuple[bool, int]:
    return section in ("resources", "checkpoint"), sections.index(section)


def costs_table(runs: Sequence[RunSummary]) -> Table:
    """Return the costs of each run: attempts, time in the queue, time allocated, goodput, hours."""
    gpus = any(attempt.gpus for run in runs for attempt in run.attempt_usage)
    total = total_gpu_hours if gpus else total_cpu_hours
    hours = [total(run.attempt_usage) for run in runs]
    name = "GPU-hours" if gpus else "CPU-hours"
    rows = [
        (
            run.run_id,
            str(len(run.attempt_usage)),
            seconds_text(run.goodput.waiting),
            seconds_text(run.goodput.allocated),
            formats.share(run.goodput.training, run.goodput.allocated),
            formats.hours(held.allocated),
            formats.hours(held.lost),
        )
        for run, held in zip(runs, hours, strict=True)
    ]
    head = ["run", "attempts", "waiting", "allocated", "goodput", name, "lost"]
    held, lost = sum(each.allocated for each in hours), sum(each.lost for each in hours)
    feet = (("all", "", "", "", "", formats.hours(held), formats.hours(lost)),)
    return table("Costs", head, rows, feet=feet)


def best_places(runs: Sequence[RunSummary], metric: str, values: Sequence[float | None]) -> list[int]:
    """Return the places of the best values of a metric; none if all look the same.

    None either if no run declares the metric's goal, or if two runs disagree.
    """
    goals = {goal for run in runs if (goal := goal_of(run.config, metric)) is not None}
    units = {known.unit for run in runs if (known := run.metric(metric)) is not None}
    if len(goals) != 1 or len(units) > 1:
        return []
    return formats.best_places(shared_metric(runs, metric), values, goals.pop())


def compared_metrics(runs: Sequence[RunSummary]) -> list[str]:
    """Choose the loss, the runs' main metrics, and the metrics that their tasks call brief."""
    first = (name for run in runs for name in brief_metrics(run.kind))
    wanted = ["loss", *map(main_metric, runs), *first]
    known = score_names(runs)
    return [name for name in dict.fromkeys(wanted) if name in known or (name and formats.is_of_part(name))]
