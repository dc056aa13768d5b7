"""The report's numbers as CSV, for a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from toolkit.metrics.slice_score import SliceScore
from toolkit.report.slices import SliceReport
from toolkit.report.values import ClassReport, LabelCounts, RunSummary, TwoClassCurves, to_json
from toolkit.usage.values import Moment

_CLASS_SCORES = ("precision", "recall", "f1", "average_precision", "roc_auc", "support")


def spreadsheets(summary: RunSummary) -> Iterator[tuple[str, str]]:
    """Yield name and text of every table that the run has numbers for, but for the metrics."""
    if summary.by_epoch:
        yield "epochs.csv", epochs_csv(summary)
    if summary.labels:
        yield "labels.csv", labels_csv(summary.labels)
    for name, report in summary.classes.items():
        yield f"classes_{name}.csv", classes_csv(report)
        yield f"confusion_{name}.csv", _confusion_csv(report, report.confusion)
        yield f"confusion_{name}_normalised.csv", _confusion_csv(report, report.shares)
    for name, curves in summary.two_classes.items():
        yield f"curves_{name}.csv", curves_csv(curves)
    for split, slices in summary.slices.items():
        yield f"slices_{split}.csv", slices_csv(slices)
    if summary.starts:
        yield "starts.csv", starts_csv(summary)
    if summary.usage:
        yield "usage.csv", usage_csv(summary)


def metrics_csv(summary: RunSummary) -> str:
    """Return all metrics as CSV: split, then the columns in the order of their first appearance."""
    names = list(dict.fromkeys(name for columns in summary.curves.values() for name in columns))
    return csv_text(
        ["split", *names],
        (
            [split, *(columns[name][line] if name in columns else None for name in names)]
            for split, columns in summary.curves.items()
            for line in range(len(columns["step"]))
        ),
    )


def epochs_csv(summary: RunSummary) -> str:
    """Return one line for each epoch and split."""
    parts = [(epoch.epoch, "train", epoch.training) for epoch in summary.by_epoch]
    parts += [(epoch.epoch, "validation", epoch.validation) for epoch in summary.by_epoch if epoch.validation]
    names = list(dict.fromkeys(name for _, _, scores in parts for name in scores))
    rows = ([epoch, split, *(scores.get(name) for name in names)] for epoch, split, scores in parts)
    return csv_text(["epoch", "split", *names], rows)


def labels_csv(counts: LabelCounts) -> str:
    """Return one line for each split and label: texts, and the samples that they were folded into."""
    rows = (
        [split, label, counts.texts[split][position], counts.samples[split][position]]
        for split in counts.samples
        for position, label in enumerate(counts.labels)
    )
    return csv_text(["split", "label", "texts", "samples"], rows)


def classes_csv(report: ClassReport) -> str:
    """Return one line for each class, and what has one value for all of them."""
    counts = _positives_and_negatives(report)
    rows = [
        [row.label, *(getattr(row, name) for name in _CLASS_SCORES), *counted]
        for row, counted in zip(report.classes, counts, strict=True)
    ]
    for kind in ("macro", "weighted"):
        rows.append([f"{kind} average", *(getattr(report, f"{kind}_{name}", None) for name in _CLASS_SCORES)])
    rows.append(["accuracy", None, None, report.accuracy])
    rows.append(["Matthews correlation", None, None, report.mcc])
    head = ["class", *_CLASS_SCORES, "true_positives", "false_positives", "false_negatives"]
    return csv_text(head, ([*row, *[None] * (len(head) - len(row))] for row in rows))


def _positives_and_negatives(report: ClassReport) -> list[list[int]]:
    """True positives, false positives and false negatives of each class."""
    columns = [sum(column) for column in zip(*report.confusion, strict=True)]
    rows = [sum(row) for row in report.confusion]
    right = [row[position] for position, row in enumerate(report.confusion)]
    return [[r, column - r, row - r] for r, column, row in zip(right, columns, rows, strict=True)]


def curves_csv(curves: TwoClassCurves) -> str:
    """Return the points of both curves, each named by its curve."""
    roc = (["roc", x, y] for x, y in zip(*curves.roc, strict=True))
    precision_recall = (["precision_recall", x, y] for x, y in zip(*curves.precision_recall, strict=True))
    return csv_text(["curve", "x", "y"], (*roc, *precision_recall))


def slices_csv(report: SliceReport) -> str:
    """Return one line for each slice: counts and shares; not_nc is of mentions whose gold is a candidate."""
    names = list(SliceScore().to_json())
    rows = ([name, *(getattr(scores, key) for key in names)] for name, scores in report.scores.items())
    return csv_text(["slice", *names], rows)


def starts_csv(summary: RunSummary) -> str:
    """Return one line for each start: its seconds by what they were for, and the hours that it held."""
    rows = to_json(summary)["starts"]
    return csv_text(list(rows[0]), (row.values() for row in rows))


def usage_csv(summary: RunSummary) -> str:
    """Return one line for each record of each rank."""
    names = Moment.__slots__
    rows = (
        [rank.nonce, rank.rank, rank.host, *(getattr(moment, name) for name in names)]
        for rank in summary.usage
        for moment in rank.history
    )
    return csv_text(["start", "rank", "host", *names], rows)


def _confusion_csv(report: ClassReport, cells: Sequence[Sequence[float | None]]) -> str:
    rows = ([label, *row] for label, row in zip(report.labels, cells, strict=True))
    return csv_text(["true \\ predicted", *report.labels], rows)


def csv_text(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table; None is an empty cell."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return stream.getvalue()
