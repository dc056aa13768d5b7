"""The tables of several runs side by side, and their numbers in full, for a spreadsheet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from toolkit.registry import brief_metrics
from toolkit.report import formats
from toolkit.report.blocks import Numbers, Table, table, turned
from toolkit.report.comparison.groups import Group, Spread, groups, spread_text
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
    values = _values(runs, names)
    rows = [
        (
            run.run_id,
            run.state,
            formats.count(run.step),
            facts.best_words(run, short=True) or formats.NOTHING,
            *(run.score(name, values[name][place]) for name in names),
            formats.duration(run.seconds),
        )
        for place, run in enumerate(runs)
    ]
    head = ["run", "state", "step", facts.best_title(runs), *titles, "time"]
    bad = [(run_id, "unreadable", *[formats.NOTHING] * (len(head) - 2)) for run_id in compared.unreadable]
    note = "\n".join(f"{run_id}: {why}" for run_id, why in compared.unreadable.items())
    last = len(head) - 1
    # Time, step, best; then the scores from the right, except the first two.
    optional = (last, 2, 3, *range(last - 1, 5, -1))
    best = _best_cells(runs, values, first=4)
    return table("Runs", head, [*rows, *bad], texts=2, best=best, optional=optional, note=note)


def scores_table(runs: Sequence[RunSummary]) -> Table:
    """Return every score of the compared split: one row for each run, or one column if there are few runs."""
    split = facts.compared_split(runs)
    names = [name for name in score_names(runs) if any(name in run.scores.get(split, {}) for run in runs)]
    values = _values(runs, names)
    rows = [
        (run.run_id, *(run.score(name, values[name][place]) for name in names))
        for place, run in enumerate(runs)
    ]
    best = _best_cells(runs, values, first=1)
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
            *(_mean(group, name, spreads[name][place]) for name in names),
        )
        for place, group in enumerate(found)
    ]
    means = {name: [each.mean if each else None for each in spreads[name]] for name in names}
    best = _best_cells(runs, means, first=2)
    titles = (f"{split} {shared_title(runs, name)}" for name in names)
    return table("Means over seeds", ["setting", "n", *titles], rows, best=best, note=_DEVIATION)


def _mean(group: Group, name: str, found: Spread | None) -> str:
    """Mean and deviation of a score, with the number of its runs if fewer than have finished."""
    shown = spread_text(group.runs[0].metric(name), found)
    return shown if found is None or found.runs == len(group.finished) else f"{shown} (n = {found.runs})"


def differences_table(runs: Sequence[RunSummary]) -> Table:
    """Return one row for each key that differs, grouped by section, with the value of each run."""
    differences = config_differences(runs)
    sections = [key.partition(".")[0] for key in differences]
    # Sections in their order, but sections that change no result last.
    in_order = sorted(dict.fromkeys(sections), key=lambda section: section in ("resources", "checkpoint"))
    keys = sorted(differences, key=lambda key: in_order.index(key.partition(".")[0]))
    rows = [(key, *map(facts.setting, differences[key])) for key in keys]
    firsts = [key.partition(".")[0] for key in keys]
    parts = frozenset(place for place in range(1, len(keys)) if firsts[place] != firsts[place - 1])
    head = ["key", *(run.run_id for run in runs)]
    made = table("What differs", head, rows, parts=parts)
    return turned(made, "run") if len(runs) > COLUMNS and len(keys) < len(runs) else made


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


def _values(runs: Sequence[RunSummary], names: Sequence[str]) -> dict[str, list[float | None]]:
    """The scores of the compared split, by metric: one for each run."""
    split = facts.compared_split(runs)
    return {name: [run.scores.get(split, {}).get(name) for run in runs] for name in names}


def _best_cells(
    runs: Sequence[RunSummary], values: Mapping[str, Sequence[float | None]], first: int
) -> frozenset[tuple[int, int]]:
    """Row and column of the best values; `first` is the column of the first metric."""
    return frozenset(
        (place, column)
        for column, (name, found) in enumerate(values.items(), start=first)
        for place in best_places(runs, name, found)
    )


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


def runs_numbers(runs: Sequence[RunSummary]) -> Numbers:
    """Return one line for each run: its state, its costs, and the scores of every split."""
    scores = dict.fromkeys(
        (split, name) for run in runs for split in run.scores for name in score_names([run])
    )
    head = ["run", "state", "seed", "step", "epoch", "seconds", "starts", "waiting_s", "allocated_s"]
    head += ["goodput", "gpu_hours", "cpu_hours", *(f"{split}_{name}" for split, name in scores)]
    rows = [
        [
            run.run_id,
            run.state,
            run.config.get("seed"),
            run.step,
            run.epoch,
            run.seconds,
            len(run.attempt_usage),
            run.goodput.waiting,
            run.goodput.allocated,
            run.goodput.share if run.attempt_usage else None,
            total_gpu_hours(run.attempt_usage).allocated,
            total_cpu_hours(run.attempt_usage).allocated,
            *(run.scores.get(split, {}).get(name) for split, name in scores),
        ]
        for run in runs
    ]
    return Numbers(name="runs", head=head, rows=rows)


def groups_numbers(runs: Sequence[RunSummary]) -> Numbers:
    """Return one line for each setting and score: mean and sample standard deviation over the seeds."""
    split = facts.compared_split(runs)
    rows = [
        [group.label, split, name, each.mean, each.deviation, each.runs]
        for group in groups(runs)
        for name in score_names(group.runs)
        if (each := group.spread(split, name)) is not None
    ]
    head = ["setting", "split", "metric", "mean", "deviation", "n"]
    return Numbers(name="groups", head=head, rows=rows)


def differences_numbers(runs: Sequence[RunSummary]) -> Numbers:
    """Return one line for each key that differs."""
    rows = [[key, *values] for key, values in config_differences(runs).items()]
    return Numbers(name="differences", head=["key", *(run.run_id for run in runs)], rows=rows)


def curves_numbers(runs: Sequence[RunSummary]) -> Numbers:
    """Return one line for each point of each curve."""
    rows = [
        [run.run_id, split, name, step, value]
        for run in runs
        for split, columns in run.curves.items()
        for name in columns
        if name not in formats.NOT_SCORES
        for step, value in zip(*run.points(split, name), strict=True)
    ]
    return Numbers(name="curves", head=["run", "split", "metric", "step", "value"], rows=rows)
