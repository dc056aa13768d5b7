"""Tables of classes, labels and thresholds, and their full numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from toolkit.report import formats
from toolkit.report.blocks import Block, Figure, Numbers, Table, table
from toolkit.system.output.few import shortened
from toolkit.workloads.text_classification.metrics.declared import BY_NAME
from toolkit.workloads.text_classification.report.class_values import (
    ClassReport,
    LabelCounts,
    TwoClassCurves,
    View,
)
from toolkit.workloads.text_classification.report.mistakes import Mistake

_SCORES = ("precision", "recall", "f1")
_AREAS = ("average_precision", "roc_auc")
_CLASSES = 40
_LABELS = 40
_CONFUSIONS = 15
_LABEL_CHARACTERS = 200
#: Most characters of a label above a column of a matrix.
_SHORT_CHARACTERS = 28
_EXCERPT_CHARACTERS = 600


def classes_table(report: ClassReport) -> Table:
    """Return precision, recall, F1, areas and support of each class, and the averages."""
    areas = [name for name in _AREAS if any(getattr(row, name) is not None for row in report.classes)]
    names = (*_SCORES, *areas)
    rows = [
        [
            _label(row.label),
            *(formats.score(BY_NAME[name], getattr(row, name)) for name in names),
            formats.count(row.support),
        ]
        for row in report.classes
    ]
    feet = [
        (
            average,
            *(formats.score(BY_NAME[name], value) for name, value in zip(_SCORES, values, strict=True)),
            *("" for _ in areas),
            formats.count(report.samples),
        )
        for average, values in _averages(report)
    ]
    few = sorted(range(len(rows)), key=lambda place: report.classes[place].f1)[:_CLASSES]
    return table(
        f"Classes ({report.view.title})",
        ["class", *map(_title, names), "support"],
        rows,
        feet=tuple(feet),
        optional=tuple(1 + names.index(name) for name in areas),
        few=tuple(few) if len(few) < len(rows) else None,
        few_note=f"the {_CLASSES} lowest F1 of {len(rows)} classes",
        note=_class_facts(report),
    )


def _title(name: str) -> str:
    return formats.metric_title(name, BY_NAME[name])


def _averages(report: ClassReport) -> Iterator[tuple[str, list[float | None]]]:
    """Yield the names of the known averages, each with precision, recall and F1."""
    for kind in ("macro", "weighted"):
        values = [getattr(report, f"{kind}_{name}") for name in _SCORES]
        if any(value is not None for value in values):
            yield f"{kind} average", values


def _class_facts(report: ClassReport) -> str:
    """Return the scores of all classes together; the areas of two classes are shown with their curves."""
    names = ("accuracy", "mcc", *(("roc_auc", "average_precision") if len(report.labels) > 2 else ()))
    shown = [
        f"{_title(name)} {formats.score(BY_NAME[name], value)}"
        for name in names
        if (value := getattr(report, name)) is not None
    ]
    counted = {"fragment": "fragments", "text": "texts"}.get(report.view.level or "", "samples")
    return " · ".join([*shown, f"{formats.count(report.samples)} {counted}"])


def confusion_tables(report: ClassReport, picture: Figure | None) -> tuple[Table, ...]:
    """Return the confusion matrix; if it is too wide or unknown, the most frequent confusions."""
    confusions = confusions_table(report)
    if report.confusion is None:
        return (confusions,)
    names = [formats.one_line(label, _SHORT_CHARACTERS) for label in report.labels]
    rows = [(name, *map(formats.count, counts)) for name, counts in zip(names, report.confusion, strict=True)]
    instead: tuple[Block, ...] = (confusions,) if picture is None else (picture, confusions)
    title, head = f"Confusion ({report.view.title})", ["true ╲ predicted", *names]
    return (table(title, head, rows, shares=report.shares, instead=instead),)


def confusions_table(report: ClassReport) -> Table:
    rows = [
        [_label(true), _label(predicted), formats.count(samples)]
        for true, predicted, samples in report.confusions(_CONFUSIONS)
    ]
    title = f"Most frequent confusions ({report.view.title})"
    return table(title, ["true", "predicted", "samples"], rows, texts=2)


def thresholds_table(curves: TwoClassCurves) -> Table:
    """Return thresholds on the probability of the positive class, with their precision and recall."""
    rows = []
    for recall, precision in zip(curves.recall_at_precision, curves.precision_at_recall, strict=True):
        at_precision = formats.share(None if recall.threshold is None else recall.recall, 1)
        at_recall = formats.share(None if precision.threshold is None else precision.precision, 1)
        first, second = (formats.decimal(each.threshold, 4) for each in (recall, precision))
        rows.append([f"{100 * recall.at:.0f} %", at_precision, first, at_recall, second])
    title = f"Thresholds on P({formats.one_line(curves.positive, _SHORT_CHARACTERS)}), {curves.view.title}"
    head = ["at least", "recall at this precision", "threshold", "precision at this recall", "threshold"]
    return table(title, head, rows, texts=0, note=_curve_facts(curves))


def _curve_facts(curves: TwoClassCurves) -> str:
    """Return the areas under the curves, and the share of the positive class."""
    areas = (("roc_auc", curves.roc_auc), ("average_precision", curves.average_precision))
    shown = [f"{_title(name)} {formats.score(BY_NAME[name], value)}" for name, value in areas]
    of = formats.count(curves.positives + curves.negatives)
    return " · ".join([*shown, f"{formats.count(curves.positives)} of {of} are {curves.positive}"])


def labels_table(title: str, labels: Sequence[str], splits: Mapping[str, Sequence[int]]) -> Table:
    """Return the number of each label in each split, with its share of the split, and the sums."""
    columns = {"all": [sum(counts) for counts in zip(*splits.values(), strict=True)], **splits}
    rows = [
        [_label(label), *(_part(counts[place], sum(counts)) for counts in columns.values())]
        for place, label in enumerate(labels)
    ]
    few = sorted(range(len(rows)), key=lambda place: -columns["all"][place])[:_LABELS]
    return table(
        title,
        ["label", *columns],
        rows,
        feet=(("all", *(formats.count(sum(counts)) for counts in columns.values())),),
        few=tuple(few) if len(few) < len(rows) else None,
        few_note=f"the {_LABELS} most frequent of {len(rows)} labels",
    )


def _part(part: int, whole: int) -> str:
    return f"{formats.count(part)}  {formats.share(part, whole):>6}"


def mistakes_table(view: View, found: Sequence[Mistake]) -> Table:
    rows = [
        [
            mistake.row_index,
            shortened(mistake.text, _EXCERPT_CHARACTERS),
            _label(mistake.target),
            _label(mistake.prediction),
            formats.share(mistake.confidence, 1),
            formats.share(mistake.target_probability, 1),
        ]
        for mistake in found
    ]
    head = ["row_index", "text", "true", "predicted", "confidence", "P(true)"]
    note = f"row_index: the column of artifacts/{view.name}_predictions.tsv, counted from 0"
    return table(f"Surest mistakes ({view.title})", head, rows, texts=4, prose=(1,), note=note)


def _label(label: str) -> str:
    return formats.one_line(label, _LABEL_CHARACTERS)


def class_numbers(report: ClassReport) -> Iterator[Numbers]:
    """Yield the full scores and confusions."""
    name = report.view.name
    yield _classes_numbers(report)
    if report.confusion is None:
        head = ["true", "predicted", "samples"]
        yield Numbers(name=f"confusions_{name}", head=head, rows=report.mistakes)
        return
    head = ["true \\ predicted", *report.labels]
    for ending, cells in (("", report.confusion), ("_normalised", report.shares)):
        rows = [[label, *row] for label, row in zip(report.labels, cells, strict=True)]
        yield Numbers(name=f"confusion_{name}{ending}", head=head, rows=rows)


def _classes_numbers(report: ClassReport) -> Numbers:
    """Return a row for each class, and rows of averages and of scores of all classes."""
    names = (*_SCORES, *_AREAS, "support")
    counts = ("true_positives", "false_positives", "false_negatives")
    rows = [[row.label, *(getattr(row, name) for name in (*names, *counts))] for row in report.classes]
    for kind in ("macro", "weighted"):
        averages = (getattr(report, f"{kind}_{name}", None) for name in names)
        rows.append([f"{kind} average", *averages, None, None, None])
    rows += [
        [name, None, None, value, *[None] * 6]
        for name, value in (("accuracy", report.accuracy), ("Matthews correlation", report.mcc))
    ]
    return Numbers(name=f"classes_{report.view.name}", head=["class", *names, *counts], rows=rows)


def curves_numbers(curves: TwoClassCurves) -> Numbers:
    """Return the points of both curves, each with the name of its curve."""
    roc = (["roc", x, y] for x, y in zip(*curves.roc, strict=True))
    precision_recall = (["precision_recall", x, y] for x, y in zip(*curves.precision_recall, strict=True))
    name, rows = f"curves_{curves.view.name}", [*roc, *precision_recall]
    return Numbers(name=name, head=["curve", "x", "y"], rows=rows)


def labels_numbers(counts: LabelCounts) -> Numbers:
    """Return the numbers of texts and of samples for each split and label."""
    rows = [
        [split, label, counts.texts[split][position], counts.samples[split][position]]
        for split in counts.samples
        for position, label in enumerate(counts.labels)
    ]
    return Numbers(name="labels", head=["split", "label", "texts", "samples"], rows=rows)
