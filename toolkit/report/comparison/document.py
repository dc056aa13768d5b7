"""Several runs side by side as a document, and as files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from toolkit.report import formats
from toolkit.report.blocks import Document, Figure, Section, figure, table_section
from toolkit.report.comparison import tables
from toolkit.report.comparison.groups import band, groups, has_seeds
from toolkit.report.comparison.reading import Compared, to_json
from toolkit.report.model import RunSummary, config_differences, main_metric, score_names, shared_title
from toolkit.report.rendering.writing import write_at
from toolkit.report.run import text
from toolkit.report.task_report import TaskReport

_PLOTS = "toolkit.report.comparison.plots"
_TIME_LINES = "toolkit.report.time_and_resources.timeline_plot:timelines_plot"
#: Figures of loss and main metric, each with its means over seeds; a page folds the others.
_CURVES = 4
_METRICS = 6


def write_comparison(compared: Compared, target: Path) -> Path:
    """Write a comparison of several runs, as `write_at` does; return the page's path."""
    return write_at(comparison_document(compared), to_json(compared), target)


def comparison_document(compared: Compared) -> Document:
    """Return a comparison of several runs."""
    count = len(compared.runs) + len(compared.unreadable)
    return Document(title=f"{count} runs compared", sections=tuple(_sections(compared)))


def _sections(compared: Compared) -> Iterator[Section]:
    runs = compared.runs
    own = list(_own(runs))
    yield Section(title="Runs", blocks=(tables.runs_table(compared), tables.runs_numbers(runs)))
    if has_seeds(groups(runs)):
        yield table_section(tables.groups_table(runs))
    yield from (section for section in own if not section.page_only)
    if config_differences(runs):
        yield table_section(tables.differences_table(runs))
    yield from _curves(runs)
    if _has_more_scores(runs):
        yield table_section(tables.scores_table(runs), page_only=True)
    yield from (section for section in own if section.page_only)
    if any(run.attempt_usage for run in runs):
        lines = figure("timelines", "Time lines of the runs", _TIME_LINES, runs)
        yield table_section(tables.costs_table(runs), lines)
    more = (tables.groups_numbers(runs), tables.differences_numbers(runs), tables.curves_numbers(runs))
    yield Section(title="Numbers", blocks=more)


def _own(runs: Sequence[RunSummary]) -> Iterator[Section]:
    """Yield the sections of the runs' tasks, task by task."""
    split = text.compared_split(runs)
    by_task: dict[type[TaskReport], list[tuple[str, TaskReport]]] = {}
    for run in runs:
        if run.own is not None:
            by_task.setdefault(type(run.own), []).append((run.run_id, run.own))
    for task, reports in by_task.items():
        yield from task.compared(reports, split)


def _curves(runs: Sequence[RunSummary]) -> Iterator[Section]:
    """Yield the curves of the first metrics, and the others folded."""
    figures = tuple(_figures(runs))
    if figures:
        yield Section(title="Curves", blocks=figures[:_CURVES])
    if more := figures[_CURVES:]:
        yield Section(title="", blocks=more, folded=f"{len(more)} more curves")


def _figures(runs: Sequence[RunSummary]) -> Iterator[Figure]:
    overlay = f"{_PLOTS}:overlay_plot"
    for metric in _metrics(runs):
        name, about = formats.file_name(metric), f"Validation {shared_title(runs, metric)}"
        yield figure(name, f"{about} of each run", overlay, runs, "validation", metric)
        found = [group for group in groups(runs) if band(group, metric)]
        if found and has_seeds(found):
            means = f"{about}, mean over seeds"
            yield figure(f"{name}_seeds", means, f"{_PLOTS}:seeds_plot", found, metric)
    if any(run.points("train", "loss")[0] for run in runs):
        yield figure("train_loss", "Training loss of each run", overlay, runs, "train", "loss")


def _metrics(runs: Sequence[RunSummary]) -> list[str]:
    """The loss, the runs' main metrics, and other metrics that several runs have over their steps."""
    first = ["loss", *filter(None, map(main_metric, runs))]
    known = [name for name in score_names(runs) if _drawn(runs, name) > 1]
    return [name for name in dict.fromkeys([*first, *known]) if _drawn(runs, name)][:_METRICS]


def _drawn(runs: Sequence[RunSummary], metric: str) -> int:
    return sum(bool(run.points("validation", metric)[0]) for run in runs)


def _has_more_scores(runs: Sequence[RunSummary]) -> bool:
    """Whether the compared split has scores that the table of runs leaves out."""
    split = text.compared_split(runs)
    known = {name for run in runs for name in run.scores.get(split, {})}
    return not known & set(score_names(runs)) <= set(tables.compared_metrics(runs))
