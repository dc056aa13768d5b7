"""The parts of a run's page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from toolkit.report import facts, formats, page, slices
from toolkit.report.advice import NO_ADVICE, Advice, advice_sheet
from toolkit.report.mistakes import Mistake, worst_mistakes
from toolkit.report.page import Html, tag
from toolkit.report.slices import SliceReport
from toolkit.report.spent import usage
from toolkit.report.spent.times import time_sheet
from toolkit.report.values import ClassReport, RunSummary, TwoClassCurves, View
from toolkit.rundir import RunDir

_MISTAKES = 20
_MISTAKE_CHARACTERS = 600
_MATRIX_CLASSES = 12
_MATRIX_LABEL_CHARACTERS = 28
_CLASSES_BESIDE = 3
#: Of more classes, the heads of the matrix stand upright and its cells are narrow.
_ROOMY_CLASSES = 6
_CONFUSIONS = 15
_SCORES = ("precision", "recall", "f1")
_AREAS = ("average_precision", "roc_auc")


def headline(summary: RunSummary) -> Html:
    rows = [(name, value) for name, value in facts.headline(summary) if name != "state"]
    tiles = (tag("div", tag("dt", name), tag("dd", value)) for name, value in rows)
    newest = f"as of {formats.moment(summary.as_of)}" if summary.as_of else "nothing recorded yet"
    return page.join(
        tag("header", tag("h1", summary.run_id), tag("span", summary.state, class_=f"state {summary.state}")),
        tag("p", newest, class_="quiet"),
        tag("dl", *tiles, class_="tiles") if rows else "",
    )


def failure(summary: RunSummary) -> Html:
    assert summary.failure is not None
    found = summary.failure
    parts = [tag("p", tag("strong", f"{found.error}: {found.message}"), class_="text")]
    parts.append(tag("p", facts.failure_place(summary), class_="quiet"))
    if found.advice:
        parts.append(tag("p", found.advice))
    if found.traceback:
        parts.append(tag("details", tag("summary", "Stack trace"), tag("pre", found.traceback)))
    return page.section("Failure", *parts, class_="failure")


def scores(summary: RunSummary) -> Html:
    """The metrics of each split."""
    head, *rows = facts.score_rows(summary)
    return page.table(head, rows, numbers=range(1, len(head)))


def epochs(summary: RunSummary, picture: Html) -> list[Html]:
    """Loss and accuracy by epoch, drawn and as numbers; nothing where there are none."""
    rows = facts.epochs(summary)
    if not rows:
        return []
    table = page.table(rows[0], rows[1:], numbers=range(1, len(rows[0])))
    return [page.section("Epochs", picture, table)]


def labels(summary: RunSummary, picture: Html) -> list[Html]:
    """How the labels are distributed; nothing where no file tells."""
    counts = summary.labels
    if counts is None:
        return []
    parts = [_label_table(counts.labels, counts.texts)]
    if counts.folded:
        parts += [tag("h3", "Fragments"), _label_table(counts.labels, counts.samples)]
    return [page.section("Labels", picture, *parts)]


def _label_table(names: Sequence[str], splits: Mapping[str, Sequence[int]]) -> Html:
    head, *rows, sums = facts.label_counts(names, splits)
    return page.table(head, rows, feet=[sums], numbers=range(1, len(head)), labels=[0])


def classes(report: ClassReport, picture: Callable[[], Html]) -> Html:
    """Scores per class and the confusion matrix of one view; as a picture where there are many classes."""
    facts_line = tag("p", facts.class_facts(report), class_="quiet")
    scores = page.section(f"Classes ({report.view.title})", facts_line, _class_table(report))
    small = len(report.labels) <= _MATRIX_CLASSES
    matrix = _matrix(report) if small else page.join(picture(), _confusions(report))
    beside = len(report.labels) <= _CLASSES_BESIDE
    confusion = page.section(f"Confusion ({report.view.title})", matrix)
    return tag("div", scores, confusion, class_="pair" if beside else "")


def two_classes(levels: Sequence[TwoClassCurves], picture: Html) -> Html:
    """ROC, precision over recall, and thresholds, of one split."""
    parts = []
    for curves in levels:
        head, *rows = facts.operating_points(curves)
        parts.append(tag("h3", f"Thresholds on P({curves.positive}), {curves.view.title}"))
        parts.append(tag("p", facts.curve_facts(curves), class_="quiet"))
        parts.append(page.table(head, rows, numbers=range(len(head))))
    return page.section(f"ROC, precision and recall ({levels[0].view.split})", picture, *parts)


def slice_scores(report: SliceReport, picture: Html) -> Html:
    """Accuracy and popularity of each slice of one split, drawn and as numbers."""
    parts = []
    for inside in report.views:
        head, *rows = slices.slice_rows(report, inside)
        if inside:
            parts.append(tag("h3", "Gold among the candidates"))
        parts.append(page.table(head, rows, numbers=range(1, len(head)), labels=[0]))
        if said := slices.note(report, inside):
            parts.append(tag("p", said, class_="quiet"))
    return page.section(f"Slices ({report.split})", picture, *parts)


def _class_table(report: ClassReport) -> Html:
    areas = [name for name in _AREAS if any(getattr(row, name) is not None for row in report.classes)]
    names = (*_SCORES, *areas)
    rows = [
        [row.label, *(formats.score(name, getattr(row, name)) for name in names), formats.count(row.support)]
        for row in report.classes
    ]
    feet = [
        [
            average,
            *(formats.score(name, value) for name, value in zip(_SCORES, values, strict=True)),
            *("" for _ in areas),
            formats.count(report.samples),
        ]
        for average, values in facts.averages(report)
    ]
    head = ["class", *map(formats.metric_title, names), "support"]
    return page.table(head, rows, feet=feet, numbers=range(1, len(head)), labels=[0])


def _matrix(report: ClassReport) -> Html:
    """Return counts with the share of the true class, which is also the depth of the shade."""
    names = [formats.one_line(label, _MATRIX_LABEL_CHARACTERS) for label in report.labels]
    head = tag("tr", tag("th", "true ╲ predicted"), *(tag("th", name) for name in names))
    rows = (
        tag("tr", tag("th", name), *map(_matrix_cell, counts, shares))
        for name, counts, shares in zip(names, report.confusion, report.shares, strict=True)
    )
    dense = " dense" if len(names) > _ROOMY_CLASSES else ""
    return tag("table", tag("thead", head), tag("tbody", *rows), class_=f"matrix{dense}")


def _matrix_cell(value: int, share: float | None) -> Html:
    # At most 0.55, where the page's own ink is readable on the shade in light and in dark.
    shade = f"background: rgba(var(--shade), {0.55 * (share or 0.0) ** formats.SHADE_POWER:.3f})"
    return tag("td", formats.count(value), tag("small", formats.share(share, 1)), style=shade)


def _confusions(report: ClassReport) -> Html:
    rows = [
        [true, predicted, formats.count(samples)]
        for true, predicted, samples in report.confusions(_CONFUSIONS)
    ]
    return page.table(["true", "predicted", "samples"], rows, numbers=[2], labels=(0, 1))


def mistakes(run: RunDir, summary: RunSummary) -> list[Html]:
    """The worst mistakes on the test set, or on the validation set while there is no other.

    Of whole texts where they were folded: a fragment alone says little.
    """
    views = (
        View(name=f"{split}{text}", split=split) for split in ("test", "validation") for text in ("_text", "")
    )
    view = next((view for view in views if run.predictions(view.name).exists()), None)
    if view is None:
        return []
    report = summary.classes.get(view.name)
    found = worst_mistakes(run, view.name, report.labels if report else (), _MISTAKES)
    return [page.section(f"Surest mistakes ({view.title})", _mistake_table(found))] if found else []


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


def spent(summary: RunSummary, pictures: Mapping[str, Callable[[], Html]]) -> list[Html]:
    """Where the time went, and what was taken of the machines; nothing of a run that has not begun."""
    if not summary.starts:
        return []
    parts = [page.sheet_section(time_sheet(summary), pictures["timeline"]())]
    if summary.usage:
        parts.append(page.sheet_section(usage.usage_sheet(summary), pictures.get("usage", Html)()))
    else:
        parts.append(page.section("Memory, CPUs and GPUs", tag("p", usage.NONE, class_="quiet")))
    return parts


def advice(found: Sequence[Advice]) -> Html:
    """What could be asked for differently."""
    if found:
        return page.sheet_section(advice_sheet(found))
    return page.section("Advice", tag("p", NO_ADVICE, class_="quiet"))


def attempts(summary: RunSummary) -> Html:
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


def events(summary: RunSummary) -> Html:
    tally = ", ".join(f"{name} ({number})" for name, number in summary.events.items())
    return tag("p", f"Events: {tally}", class_="quiet") if tally else Html()


def config(run: RunDir) -> Html:
    if not run.config.exists():
        return Html()
    text = formats.clean(run.config.read_text(encoding="utf-8"))
    return tag("section", tag("details", tag("summary", "Configuration"), tag("pre", text)))
