"""The report of a run as one page to read, keep and send around, and the files beside it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from toolkit.files import write_atomic, write_json
from toolkit.report import formats, page, sections
from toolkit.report.advice import Advice
from toolkit.report.page import Html, tag
from toolkit.report.run_markdown import run_markdown
from toolkit.report.spreadsheets import metrics_csv, spreadsheets
from toolkit.report.summary import summarize, to_json
from toolkit.report.themes import DARK, LIGHT, Theme
from toolkit.report.values import RunSummary
from toolkit.rundir import RunDir

_ALT_TEXTS = {
    "loss.png": "Loss over the steps",
    "learning_rate.png": "Learning rate over the steps",
    "epochs.png": "Loss and accuracy by epoch",
    "labels.png": "Share of each label in each split",
    "slices.png": "Accuracy of each slice against that of the most popular candidate",
    "slices_over_time.png": "Accuracy of each slice over the steps",
    "timeline.png": "Starts on a time line",
    "usage.png": "Memory, CPUs and GPUs over the time",
}
#: Plots that stand in sections of their own.
_NOT_CURVES = ("confusion_", "curves_", "epochs", "labels", "slices", "timeline", "usage")
#: Plots that are drawn on request: two dresses of them take as long as three others.
_COSTLY = ("usage.png",)
#: A plot as an element; its dark dress is drawn only where the page has room for it.
Picture = Callable[[], Html]


def write_report(
    run: RunDir,
    result: Mapping[str, Any] | None = None,
    *,
    advice: Sequence[Advice] | None = None,
    thorough: bool = True,
) -> Path:
    """Write report.html, its plots, report.json, report.md and tables as CSV; return the page's path.

    result    of a run that is about to finish, because result.json is written last
    advice    None where nobody has looked for any
    thorough  False at the end of a run, whose hosts wait: without the plots that cost most
    Raises DataError for a run folder that cannot be read, OSError where nothing can be written.
    """
    summary = summarize(run, result)
    run.report.mkdir(parents=True, exist_ok=True)
    write_json(run.report_json, report_json(summary, advice))
    write_atomic(run.metrics_csv, metrics_csv(summary))
    for name, table in spreadsheets(summary):
        write_atomic(run.report / formats.file_name(name), table)
    pictures = _write_plots(run, summary, () if thorough else _COSTLY)
    write_atomic(run.report_markdown, run_markdown(summary, advice or (), pictures))
    # Last, so that a page always finds its neighbours.
    write_atomic(run.report_html, _report_page(run, summary, pictures, advice))
    return run.report_html


def report_json(summary: RunSummary, advice: Sequence[Advice] | None) -> dict[str, Any]:
    """Return the numbers of a report, with the advice where there was some to look for."""
    known = {} if advice is None else {"advice": [asdict(each) for each in advice]}
    return to_json(summary) | known


def _write_plots(run: RunDir, summary: RunSummary, left_out: Collection[str]) -> dict[str, Picture]:
    """Write the light plots beside the page; return each as an element that holds both dresses."""
    from toolkit.report import plots

    pictures: dict[str, Picture] = {}
    for name, draw in plots.run_plots(summary).items():
        if name in left_out:
            continue
        light = draw(LIGHT)
        write_atomic(run.report / name, light)
        stem = name.removesuffix(".png")
        description = _ALT_TEXTS.get(name, formats.metric_title(stem))
        pictures[stem] = partial(_picture, light, draw, f"{description} of {summary.run_id}")
    return pictures


def _picture(light: bytes, draw: Callable[[Theme], bytes], description: str) -> Html:
    return page.picture(light, draw(DARK), description)


def _report_page(
    run: RunDir, summary: RunSummary, pictures: dict[str, Picture], advice: Sequence[Advice] | None
) -> str:
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
    parts.extend(sections.spent(summary, pictures))
    if advice is not None:
        parts.append(sections.advice(advice))
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
