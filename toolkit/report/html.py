"""The report of a run, or of several, as one page to read, keep and send around."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from toolkit.files import write_atomic, write_json
from toolkit.report import facts, formats, page, sections
from toolkit.report.page import Html, tag
from toolkit.report.spreadsheets import metrics_csv, spreadsheets
from toolkit.report.summary import summarize, to_json
from toolkit.report.themes import DARK, LIGHT, Theme
from toolkit.report.values import RunSummary, config_differences
from toolkit.rundir import RunDir

_ALT_TEXTS = {
    "loss.png": "Loss over the steps",
    "learning_rate.png": "Learning rate over the steps",
    "epochs.png": "Loss and accuracy by epoch",
    "labels.png": "Share of each label in each split",
    "slices.png": "Accuracy of each slice against that of the most popular candidate",
    "slices_over_time.png": "Accuracy of each slice over the steps",
}
#: Plots that stand in sections of their own.
_NOT_CURVES = ("confusion_", "curves_", "epochs", "labels", "slices")
#: A plot as an element; its dark dress is drawn only where the page has room for it.
Picture = Callable[[], Html]


def write_report(run: RunDir, result: Mapping[str, Any] | None = None) -> Path:
    """Write report.html, its plots, report.json and tables as CSV; return the page's path.

    A run that is about to finish hands over its result, because result.json is written last.
    Raises DataError for a run folder that cannot be read, OSError where nothing can be written.
    """
    summary = summarize(run, result)
    run.report.mkdir(parents=True, exist_ok=True)
    write_json(run.report_json, to_json(summary))
    write_atomic(run.metrics_csv, metrics_csv(summary))
    for name, table in spreadsheets(summary):
        write_atomic(run.report / formats.file_name(name), table)
    pictures = _write_plots(run, summary)
    # Last, so that a page always finds its neighbours.
    write_atomic(run.report_html, _report_page(run, summary, pictures))
    return run.report_html


def write_comparison(runs: Sequence[RunDir], path: Path) -> Path:
    """Write a page that sets several runs side by side; return its path."""
    # matplotlib takes longer to import than all else here.
    from toolkit.report import plots

    summaries = [summarize(run) for run in runs]
    head, *rows = facts.comparison(summaries)
    parts = [tag("h1", f"{len(runs)} runs compared")]
    parts.append(page.section("Runs", page.table(head, rows, numbers=range(2, len(head)))))
    if rows := facts.slice_comparison(summaries):
        title = f"Slices ({facts.compared_split(summaries)} accuracy)"
        parts.append(page.section(title, page.table(rows[0], rows[1:], numbers=range(1, len(rows[0])))))
    if differences := config_differences(summaries):
        settings = [[key, *map(facts.setting, values)] for key, values in differences.items()]
        names = [summary.run_id for summary in summaries]
        parts.append(page.section("What differs", page.table(["key", *names], settings)))
    for metric, draw in plots.comparison_plots(summaries).items():
        description = f"Validation {formats.metric_title(metric)} of each run"
        parts.append(page.section("", page.picture(draw(LIGHT), draw(DARK), description)))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, page.document("Runs compared", *parts))
    return path


def _write_plots(run: RunDir, summary: RunSummary) -> dict[str, Picture]:
    """Write the light plots beside the page; return each as an element that holds both dresses."""
    from toolkit.report import plots

    pictures: dict[str, Picture] = {}
    for name, draw in plots.run_plots(summary).items():
        light = draw(LIGHT)
        write_atomic(run.report / name, light)
        stem = name.removesuffix(".png")
        description = _ALT_TEXTS.get(name, formats.metric_title(stem))
        pictures[stem] = partial(_picture, light, draw, f"{description} of {summary.run_id}")
    return pictures


def _picture(light: bytes, draw: Callable[[Theme], bytes], description: str) -> Html:
    return page.picture(light, draw(DARK), description)


def _report_page(run: RunDir, summary: RunSummary, pictures: dict[str, Picture]) -> str:
    parts = [sections.headline(summary)]
    if summary.failure:
        parts.append(sections.failure(summary))
    if summary.scores:
        parts.append(page.section("Scores", sections.scores(summary)))
    curves = [picture() for name, picture in pictures.items() if not name.startswith(_NOT_CURVES)]
    if curves:
        parts.append(page.section("Curves", *curves))
    parts.extend(sections.epochs(summary, pictures.get("epochs", Html)()))
    parts.extend(_classes(summary, pictures))
    parts.extend(_slices(summary, pictures))
    parts.extend(sections.mistakes(run, summary))
    parts.extend(sections.labels(summary, pictures.get("labels", Html)()))
    if summary.attempts:
        parts.append(page.section("Starts", sections.attempts(summary), sections.events(summary)))
    parts.append(sections.config(run))
    return page.document(summary.run_id, *parts)


def _slices(summary: RunSummary, pictures: dict[str, Picture]) -> Iterator[Html]:
    """Yield the slices of the last split, those of the others to be unfolded, and their way there."""
    for position, report in enumerate(reversed(summary.slices.values())):
        if position == 0:
            yield sections.slice_scores(report, pictures["slices"]())
        else:
            yield tag(
                "details", tag("summary", f"Slices of {report.split}"), sections.slice_scores(report, Html())
            )
    if "slices_over_time" in pictures:
        yield page.section("Slices over the steps", pictures["slices_over_time"]())


def _classes(summary: RunSummary, pictures: dict[str, Picture]) -> Iterator[Html]:
    """Yield scores, confusion and curves of the last split, and those of the others to be unfolded."""
    splits = list(dict.fromkeys(report.view.split for report in summary.classes.values()))
    for split in reversed(splits):
        parts = list(_split_classes(summary, split, pictures))
        if split == splits[-1]:
            yield from parts
        else:
            yield tag("details", tag("summary", f"Classes, confusion and curves of {split}"), *parts)


def _split_classes(summary: RunSummary, split: str, pictures: dict[str, Picture]) -> Iterator[Html]:
    for name, report in summary.classes.items():
        if report.view.split == split:
            yield sections.classes(report, pictures[formats.file_name(f"confusion_{name}")])
    levels = [curves for curves in summary.two_classes.values() if curves.view.split == split]
    if levels:
        yield sections.two_classes(levels, pictures[formats.file_name(f"curves_{split}")]())
