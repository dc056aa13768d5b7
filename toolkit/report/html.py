"""The report of a run, or of several, as one page to read, keep and send around."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from toolkit.files import write_atomic, write_json
from toolkit.report import facts, formats, page
from toolkit.report.mistakes import Mistake, worst_mistakes
from toolkit.report.page import Html, tag
from toolkit.report.summary import summarize, to_json
from toolkit.report.themes import DARK, LIGHT
from toolkit.report.values import ClassReport, RunSummary, config_differences, score_names
from toolkit.rundir import RunDir

_MISTAKES = 20
_MISTAKE_CHARACTERS = 600
_MATRIX_CLASSES = 12
_MATRIX_LABEL_CHARACTERS = 28
_CLASSES_BESIDE = 3
_CONFUSIONS = 15
_ALT_TEXTS = {"loss.png": "Loss over the steps", "learning_rate.png": "Learning rate over the steps"}


def write_report(run: RunDir, result: Mapping[str, Any] | None = None) -> Path:
    """Write report.html, its plots, report.json and metrics.csv; return the page's path.

    A run that is about to finish hands over its result, because result.json is written last.
    Raises DataError for a run folder that cannot be read, OSError where nothing can be written.
    """
    summary = summarize(run, result)
    run.report.mkdir(parents=True, exist_ok=True)
    write_json(run.report_json, to_json(summary))
    write_atomic(run.metrics_csv, metrics_csv(summary))
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


def metrics_csv(summary: RunSummary) -> str:
    """Return all metrics as CSV: split, then the columns in the order of their first appearance."""
    names = list(dict.fromkeys(name for columns in summary.curves.values() for name in columns))
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(["split", *names])
    for split, columns in summary.curves.items():
        for line in range(len(columns["step"])):
            values = (columns[name][line] if name in columns else None for name in names)
            writer.writerow([split, *("" if value is None else value for value in values)])
    return stream.getvalue()


def _write_plots(run: RunDir, summary: RunSummary) -> dict[str, Html]:
    """Write the light plots beside the page; return each as an element that holds both dresses."""
    from toolkit.report import plots

    pictures = {}
    for name, draw in plots.run_plots(summary).items():
        light = draw(LIGHT)
        write_atomic(run.report / name, light)
        stem = name.removesuffix(".png")
        description = _ALT_TEXTS.get(name, formats.metric_title(stem))
        pictures[stem] = page.picture(light, draw(DARK), f"{description} of {summary.run_id}")
    return pictures


def _report_page(run: RunDir, summary: RunSummary, pictures: dict[str, Html]) -> str:
    parts = [_headline(summary)]
    if summary.failure:
        parts.append(_failure(summary))
    if summary.scores:
        parts.append(page.section("Scores", _scores(summary)))
    curves = [picture for name, picture in pictures.items() if not name.startswith("confusion_")]
    if curves:
        parts.append(page.section("Curves", *curves))
    for split, report in summary.classes.items():
        parts.append(_classes(split, report, pictures[f"confusion_{split}"]))
    parts.extend(_mistakes(run, summary))
    if summary.attempts:
        parts.append(page.section("Starts", _attempts(summary), _events(summary)))
    parts.append(_config(run))
    return page.document(summary.run_id, *parts)


def _headline(summary: RunSummary) -> Html:
    rows = [(name, value) for name, value in facts.headline(summary) if name != "state"]
    tiles = (tag("div", tag("dt", name), tag("dd", value)) for name, value in rows)
    newest = f"as of {formats.moment(summary.as_of)}" if summary.as_of else "nothing recorded yet"
    return page.join(
        tag("header", tag("h1", summary.run_id), tag("span", summary.state, class_=f"state {summary.state}")),
        tag("p", newest, class_="quiet"),
        tag("dl", *tiles, class_="tiles") if rows else "",
    )


def _failure(summary: RunSummary) -> Html:
    assert summary.failure is not None
    found = summary.failure
    parts = [tag("p", tag("strong", f"{found.error}: {found.message}"), class_="text")]
    parts.append(tag("p", facts.failure_place(summary), class_="quiet"))
    if found.advice:
        parts.append(tag("p", found.advice))
    if found.traceback:
        parts.append(tag("details", tag("summary", "Stack trace"), tag("pre", found.traceback)))
    return page.section("Failure", *parts, class_="failure")


def _scores(summary: RunSummary) -> Html:
    names = score_names([summary])
    rows = [
        [split, *(formats.score(name, values.get(name)) for name in names)]
        for split, values in summary.scores.items()
    ]
    head = ["split", *map(formats.metric_title, names)]
    return page.table(head, rows, numbers=range(1, len(head)))


def _classes(split: str, report: ClassReport, picture: Html) -> Html:
    scores = page.section(f"Classes ({split})", _class_table(report))
    small = len(report.labels) <= _MATRIX_CLASSES
    matrix = _matrix(report) if small else page.join(picture, _confusions(report))
    beside = len(report.labels) <= _CLASSES_BESIDE
    return tag("div", scores, page.section(f"Confusion ({split})", matrix), class_="pair" if beside else "")


def _class_table(report: ClassReport) -> Html:
    names = ("precision", "recall", "f1")
    rows = [
        [row.label, *(formats.score(name, getattr(row, name)) for name in names), formats.count(row.support)]
        for row in report.classes
    ]
    macros = (formats.score(name, getattr(report, f"macro_{name}")) for name in names)
    foot = ["macro average", *macros, formats.count(sum(row.support for row in report.classes))]
    head = ["class", *map(formats.metric_title, names), "support"]
    return page.table(head, rows, foot=foot, numbers=range(1, 5), labels=[0])


def _matrix(report: ClassReport) -> Html:
    """Return counts with the share of the true class, which is also the depth of the shade."""
    names = [formats.one_line(label, _MATRIX_LABEL_CHARACTERS) for label in report.labels]
    head = tag("tr", tag("th", "true ╲ predicted"), *(tag("th", name) for name in names))
    rows = (
        tag("tr", tag("th", name), *(_matrix_cell(value, sum(row)) for value in row))
        for name, row in zip(names, report.confusion, strict=True)
    )
    return tag("table", tag("thead", head), tag("tbody", *rows), class_="matrix")


def _matrix_cell(value: int, row_sum: int) -> Html:
    share = value / row_sum if row_sum else 0.0
    # At most 0.55, where the page's own ink is readable on the shade in light and in dark.
    shade = f"background: rgba(var(--shade), {0.55 * share**formats.SHADE_POWER:.3f})"
    return tag("td", formats.count(value), tag("small", formats.share(value, row_sum)), style=shade)


def _confusions(report: ClassReport) -> Html:
    rows = [
        [true, predicted, formats.count(samples)]
        for true, predicted, samples in report.confusions(_CONFUSIONS)
    ]
    return page.table(["true", "predicted", "samples"], rows, numbers=[2], labels=(0, 1))


def _mistakes(run: RunDir, summary: RunSummary) -> list[Html]:
    """Return the worst mistakes on the test set, or on the validation set while there is no other."""
    for split in ("test", "validation"):
        report = summary.classes.get(split)
        if found := worst_mistakes(run, split, report.labels if report else (), _MISTAKES):
            return [page.section(f"Surest mistakes ({split})", _mistake_table(found))]
    return []


def _mistake_table(found: Sequence[Mistake]) -> Html:
    rows = [
        [
            mistake.row_index,
            _excerpt(mistake.text),
            mistake.target,
            mistake.prediction,
            formats.share(mistake.confidence, 1),
            formats.share(mistake.target_probability, 1),
        ]
        for mistake in found
    ]
    head = ["row", "text", "true", "predicted", "confidence", "P(true)"]
    return page.table(head, rows, numbers=(0, 4, 5), texts=[1], labels=(2, 3))


def _excerpt(text: str) -> str:
    return text if len(text) <= _MISTAKE_CHARACTERS else text[: _MISTAKE_CHARACTERS - 1] + "…"


def _attempts(summary: RunSummary) -> Html:
    rows = [
        [
            str(attempt.attempt),
            attempt.job_id or formats.NOTHING,
            ", ".join(attempt.hosts),
            f"{formats.count(attempt.world_size)} × {attempt.device or '?'}",
            f"{formats.count(attempt.first_step)} to {formats.count(attempt.last_step)}",
            formats.moment(attempt.time_start),
            formats.duration(_span(attempt.time_start, attempt.time_end)),
            attempt.why or formats.NOTHING,
        ]
        for attempt in summary.attempts
    ]
    return page.table(["start", "job", "hosts", "ranks", "steps", "began", "took", "ended because"], rows)


def _span(start: float | None, end: float | None) -> float | None:
    return None if start is None or end is None else end - start


def _events(summary: RunSummary) -> Html:
    tally = ", ".join(f"{name} ({number})" for name, number in summary.events.items())
    return tag("p", f"Events: {tally}", class_="quiet") if tally else Html()


def _config(run: RunDir) -> Html:
    if not run.config.exists():
        return Html()
    text = formats.clean(run.config.read_text(encoding="utf-8"))
    return tag("section", tag("details", tag("summary", "Configuration"), tag("pre", text)))
