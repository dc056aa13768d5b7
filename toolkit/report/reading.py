"""The artifacts of a run as values: scores per class, curves of two classes, distribution of labels.

Files of runs that are older than a score lack it; it is None then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import yaml

from toolkit.errors import DataError
from toolkit.files import read_json
from toolkit.report.formats import clean
from toolkit.report.slices import SliceReport
from toolkit.report.values import (
    ClassReport,
    ClassScore,
    LabelCounts,
    OperatingPoint,
    TwoClassCurves,
    View,
)
from toolkit.rundir import RunDir

_SPLIT_ORDER = ("train", "validation", "test")

#: Fields of a ClassReport that have one value for all classes.
_OVERALL = (
    "accuracy",
    *(f"{kind}_{score}" for kind in ("macro", "weighted") for score in ("precision", "recall", "f1")),
    "mcc",
    "roc_auc",
    "average_precision",
)

Value = TypeVar("Value")


def split_position(split: str) -> int:
    """Where a split stands among others: in the order of use, foreign ones last."""
    return _SPLIT_ORDER.index(split) if split in _SPLIT_ORDER else len(_SPLIT_ORDER)


def read(path: Path, reader: Callable[[Path], Any]) -> dict[str, Any]:
    """Read a document; empty where the file does not exist (yet).

    Raises DataError for a file that holds something else.
    """
    try:
        found = clean(reader(path))
    except (json.JSONDecodeError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise _damaged(path, str(error)) from error
    if not isinstance(found, dict | None):
        raise _damaged(path, f"a {type(found).__name__} instead of keys with values")
    return found or {}


def read_classes(run: RunDir) -> dict[str, ClassReport]:
    """Return the scores per class of every view that has them. Raises DataError."""
    found = _by_name(run.artifacts, run.classes("*").name, _class_report)
    return {report.view.name: report for report in _in_order(found, lambda report: report.view)}


def read_curves(run: RunDir) -> dict[str, TwoClassCurves]:
    """Return the curves of every view that has them. Raises DataError."""
    found = _by_name(run.artifacts, run.curves("*").name, _two_class_curves)
    return {curves.view.name: curves for curves in _in_order(found, lambda curves: curves.view)}


def read_slices(run: RunDir) -> dict[str, SliceReport]:
    """Return the scores of slices of every split that has them, in the order of use. Raises DataError."""
    found = _by_name(
        run.artifacts, run.slices("*").name, lambda view, document: SliceReport.of(view.split, document)
    )
    return {report.split: report for report in sorted(found, key=lambda report: split_position(report.split))}


def read_labels(run: RunDir) -> LabelCounts | None:
    """Return how the labels are distributed; None where no file tells. Raises DataError."""
    document = read(run.labels, read_json)
    return _value(run.labels, partial(_label_counts, document)) if document else None


def _by_name(
    folder: Path, pattern: str, value: Callable[[View, Mapping[str, Any]], Value]
) -> Iterable[Value]:
    """Read every file of a kind; its name without what the kind adds is the view's."""
    prefix, suffix = pattern.split("*")
    for path in sorted(folder.glob(pattern)):
        name = clean(path.name[len(prefix) : -len(suffix)])
        document = read(path, read_json)
        view = View(name=name, split=str(document.get("split", name)), level=document.get("level"))
        yield _value(path, partial(value, view, document))


def _in_order(found: Iterable[Value], view: Callable[[Value], View]) -> list[Value]:
    """By split; of one split the whole texts before their fragments."""
    return sorted(
        found,
        key=lambda each: (split_position(view(each).split), view(each).split, view(each).level == "fragment"),
    )


def _value(path: Path, make: Callable[[], Value]) -> Value:
    try:
        return make()
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _damaged(path, f"{type(error).__name__} {error}") from error


def _damaged(path: Path, found: str) -> DataError:
    return DataError(f"{path}: cannot be read ({found}); a report needs the file as the run wrote it")


def _class_report(view: View, document: Mapping[str, Any]) -> ClassReport:
    return ClassReport(
        view=view,
        labels=tuple(str(label) for label in document["labels"]),
        confusion=tuple(tuple(row) for row in document["confusion"]),
        classes=tuple(_class_score(row) for row in document["classes"]),
        **{name: document.get(name) for name in _OVERALL},
    )


def _class_score(row: Mapping[str, Any]) -> ClassScore:
    return ClassScore(
        label=str(row["label"]),
        precision=row["precision"],
        recall=row["recall"],
        f1=row["f1"],
        support=row["support"],
        average_precision=row.get("average_precision"),
        roc_auc=row.get("roc_auc"),
    )


def _two_class_curves(view: View, document: Mapping[str, Any]) -> TwoClassCurves:
    roc, precision_recall = document["roc"], document["precision_recall"]
    return TwoClassCurves(
        view=view,
        positive=str(document["positive"]),
        positives=document["positives"],
        negatives=document["negatives"],
        roc_auc=document["roc_auc"],
        average_precision=document["average_precision"],
        roc=(tuple(roc["false_positive_rate"]), tuple(roc["true_positive_rate"])),
        precision_recall=(tuple(precision_recall["recall"]), tuple(precision_recall["precision"])),
        recall_at_precision=tuple(OperatingPoint(**point) for point in document["recall_at_precision"]),
        precision_at_recall=tuple(OperatingPoint(**point) for point in document["precision_at_recall"]),
    )


def _label_counts(document: Mapping[str, Any]) -> LabelCounts:
    splits = sorted(document["splits"], key=lambda split: (split_position(split), split))
    return LabelCounts(
        labels=tuple(str(label) for label in document["labels"]),
        samples={split: tuple(document["splits"][split]["samples"]) for split in splits},
        texts={split: tuple(document["splits"][split]["texts"]) for split in splits},
    )
