"""The tables of several runs side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from toolkit.attempts.held import total_cpu_hours, total_gpu_hours
from toolkit.report import facts, formats
from toolkit.report.comparison.groups import groups, has_seeds, spread_text
from toolkit.report.comparison.reading import Compared
from toolkit.report.sheets import Sheet, sheet, turned
from toolkit.report.spent.times import seconds_text
from toolkit.report.values import (
    RunSummary,
    config_differences,
    main_metric,
    score_names,
    wanted_metric,
)

#: Of more runs, their names stand at rows, for their columns would not fit.
COLUMNS = 5
_DEVIATION = "mean ± sample standard deviation of the finished runs"


def sheets(compared: Compared) -> Iterator[Sheet]:
    """Yield all tables that these runs have something for."""
    yield runs_sheet(compared)
    runs = compared.runs
    if has_seeds(groups(runs)):
        yield groups_sheet(runs)
    if rows := facts.slice_comparison(runs):
        title = f"Slices ({facts.compared_split(runs)} accuracy)"
        yield sheet(title, rows[0], rows[1:])
    if config_differences(runs):
        yield differences_sheet(runs)
    if any(run.starts for run in runs):
        yield costs_sheet(runs)


def runs_sheet(compared: Compared) -> Sheet:
    """Return one row for each run with the metrics that matter most: state, step, best, scores, time."""
    runs = compared.runs
    names, split = _compared_metrics(runs), facts.compared_split(runs)
    titles = [f"{split} {formats.metric_title(name)}" for name in names]
    rows = [
        (
            run.run_id,
            run.state,
            formats.count(run.step),
            facts.best_words(run, short=True) or formats.NOTHING,
            *(formats.score(name, run.scores.get(split, {}).get(name)) for name in names),
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
    # Time, step, best; then the scores from the right, but for the first two.
    optional = (last, 2, 3, *range(last - 1, 5, -1))
    return sheet("Runs", head, [*rows, *bad], texts=2, best=frozenset(best), optional=optional, note=note)


def scores_sheet(runs: Sequence[RunSummary]) -> Sheet:
    """Return every score of the compared split, a row for each run; of few runs a column."""
    split = facts.compared_split(runs)
    names = [name for name in score_names(runs) if any(name in run.scores.get(split, {}) for run in runs)]
    values = {name: [run.scores.get(split, {}).get(name) for run in runs] for name in names}
    rows = [
        (run.run_id, *(formats.score(name, values[name][place]) for name in names))
        for place, run in enumerate(runs)
    ]
    best = frozenset(
        (place, column)
        for column, name in enumerate(names, start=1)
        for place in best_places(runs, name, values[name])
    )
    made = sheet(f"Scores ({split})", ["run", *map(formats.metric_title, names)], rows, best=best)
    return turned(made, "metric") if len(runs) <= COLUMNS else made


def has_more_scores(runs: Sequence[RunSummary]) -> bool:
    """Whether the compared split has scores that the table of runs leaves out."""
    split = facts.compared_split(runs)
    known = {name for run in runs for name in run.scores.get(split, {})}
    return not known & set(score_names(runs)) <= set(_compared_metrics(runs))


def groups_sheet(runs: Sequence[RunSummary]) -> Sheet:
    """Return one row for each setting, with the scores of its runs over their seeds."""
    found = groups(runs)
    names, split = _compared_metrics(runs), facts.compared_split(runs)
    spreads = {name: [group.spread(split, name) for group in found] for name in names}
    rows = [
        (
            group.label,
            f"{len(group.finished)}" + (f" of {len(group.runs)}" if group.finished != group.runs else ""),
            *(spread_text(name, spreads[name][place]) for name in names),
        )
        for place, group in enumerate(found)
    ]
    best = frozenset(
        (place, column)
        for column, name in enumerate(names, start=2)
        for place in best_places(runs, name, [each.mean if each else None for each in spreads[name]])
    )
    titles = (f"{split} {formats.metric_title(name)}" for name in names)
    return sheet("Same but for the seed", ["setting", "n", *titles], rows, best=best, note=_DEVIATION)


def differences_sheet(runs: Sequence[RunSummary]) -> Sheet:
    """Return one row for each key that differs, grouped by section, with the value of each run."""
    differences = config_differences(runs)
    keys = sorted(differences, key=_Order(differences))
    rows = [(key, *map(facts.setting, differences[key])) for key in keys]
    firsts = [key.partition(".")[0] for key in keys]
    sections = frozenset(place for place in range(1, len(keys)) if firsts[place] != firsts[place - 1])
    head = ["key", *(run.run_id for run in runs)]
    made = sheet("What differs", head, rows, sections=sections)
    return turned(made, "run") if len(runs) > COLUMNS and len(keys) < len(runs) else made


class _Order:
    """Where a key stands: sections as they come first, what changes no result last."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._sections = list(dict.fromkeys(key.partition(".")[0] for key in keys))

    def __call__(self, key: str) -> tuple[bool, int]:
        section = key.partition(".")[0]
        return section in ("resources", "checkpoint"), self._sections.index(section)


def costs_sheet(runs: Sequence[RunSummary]) -> Sheet:
    """Return what each run took: starts, time in the queue, time allocated, goodput, hours."""
    gpus = any(start.gpus for run in runs for start in run.starts)
    total = total_gpu_hours if gpus else total_cpu_hours
    hours = [total(run.starts) for run in runs]
    name = "GPU-hours" if gpus else "CPU-hours"
    rows = [
        (
            run.run_id,
            str(len(run.starts)),
            seconds_text(run.goodput.waiting),
            seconds_text(run.goodput.allocated),
            formats.share(run.goodput.training, run.goodput.allocated),
            formats.hours(held.held),
            formats.hours(held.lost),
        )
        for run, held in zip(runs, hours, strict=True)
    ]
    head = ["run", "starts", "waiting", "allocated", "goodput", name, "lost"]
    held, lost = sum(each.held for each in hours), sum(each.lost for each in hours)
    feet = (("all", "", "", "", "", formats.hours(held), formats.hours(lost)),)
    return sheet("What they took", head, rows, feet=feet)


def classes_sheet(runs: Sequence[RunSummary]) -> Sheet | None:
    """Return the F1 of each class, with a column for each run; None where fewer than two have the same."""
    split = facts.compared_split(runs)
    reports = [(run, run.classes[split]) for run in runs if split in run.classes]
    if len(reports) < 2 or len({report.labels for _, report in reports}) > 1:
        return None
    rows = [
        (label, *(formats.score("f1", report.classes[place].f1) for _, report in reports))
        for place, label in enumerate(reports[0][1].labels)
    ]
    best = frozenset(
        (place, column + 1)
        for place in range(len(rows))
        for column in _best_of("f1", [report.classes[place].f1 for _, report in reports], lower=False)
    )
    head = ["class", *(run.run_id for run, _ in reports)]
    made = sheet(f"F1 of each class ({split})", head, rows, best=best)
    return turned(made, "run") if len(reports) > COLUMNS else made


def best_places(runs: Sequence[RunSummary], metric: str, values: Sequence[float | None]) -> list[int]:
    """Return where the best of some values of a metric stand; nothing where all look the same."""
    directions = [way for name, way in (wanted_metric(run.config) for run in runs) if name == metric]
    lower = directions[0] == "min" if directions else formats.is_lower_better(metric)
    return _best_of(metric, values, lower)


def _best_of(metric: str, values: Sequence[float | None], lower: bool) -> list[int]:
    # Not a number is no value: it equals nothing, not even itself.
    known = [value for value in values if value is not None and value == value]
    shown = [formats.score(metric, value) for value in values]
    if len({formats.score(metric, value) for value in known}) < 2:
        return []
    best = formats.score(metric, min(known) if lower else max(known))
    return [place for place, text in enumerate(shown) if text == best]


def _compared_metrics(runs: Sequence[RunSummary]) -> list[str]:
    """Choose the loss, what the runs choose their best by, and F1: a terminal has 80 columns."""
    wanted = ["loss", *(main_metric(run) for run in runs), "macro_f1"]
    known = score_names(runs)
    return [name for name in dict.fromkeys(wanted) if name in known or (name and formats.is_of_slice(name))]
