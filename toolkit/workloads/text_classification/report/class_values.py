"""Read the artifacts of a text classification.

A score is None if the version of the run did not write it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from toolkit.report.reading import split_position
from toolkit.workloads.text_classification.metrics.score_values import ClassScore, OperatingPoint


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The subject of scores: the samples of a split, or the whole texts of a split with folded texts.

    name   beginning of the file names
    level  text or fragment; None if the files do not have it
    """

    name: str
    split: str
    level: str | None = None

    @property
    def title(self) -> str:
        """The split, with the level if the split has two."""
        if self.name != self.split:
            return f"{self.split}, whole texts"
        return f"{self.split}, fragments" if self.level == "fragment" else self.split


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassReport:
    """Scores per class of one view; `confusion[true][predicted]` counts samples.

    With very many classes, `mistakes` replaces the matrix: the most frequent (true, predicted, samples).
    Areas are of the second of two classes, or means over more classes.
    """

    view: View
    labels: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...] | None
    classes: tuple[ClassScore, ...]
    accuracy: float | None = None
    macro_precision: float | None = None
    macro_recall: float | None = None
    macro_f1: float | None = None
    weighted_precision: float | None = None
    weighted_recall: float | None = None
    weighted_f1: float | None = None
    mcc: float | None = None
    roc_auc: float | None = None
    average_precision: float | None = None
    mistakes: tuple[tuple[str, str, int], ...] = ()

    @property
    def samples(self) -> int:
        return sum(row.support for row in self.classes)

    @property
    def shares(self) -> tuple[tuple[float | None, ...], ...]:
        """The confusion matrix as shares of the true class; the row of a class without samples is None."""
        return tuple(
            tuple(value / total if total else None for value in row)
            for row, total in ((row, sum(row)) for row in self.confusion or ())
        )

    def confusions(self, limit: int) -> list[tuple[str, str, int]]:
        """Return the most frequent mistakes as (true label, predicted label, samples)."""
        if self.confusion is None:
            return list(self.mistakes[:limit])
        found = [
            (true, predicted, samples)
            for row, true in enumerate(self.labels)
            for column, predicted in enumerate(self.labels)
            if row != column and (samples := self.confusion[row][column])
        ]
        return sorted(found, key=lambda mistake: -mistake[2])[:limit]


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoClassCurves:
    """ROC and precision over recall of the second of two classes, `positive`; points as x and y."""

    view: View
    positive: str
    positives: int
    negatives: int
    roc_auc: float | None
    average_precision: float | None
    roc: tuple[tuple[float, ...], tuple[float, ...]]
    precision_recall: tuple[tuple[float, ...], tuple[float, ...]]
    recall_at_precision: tuple[OperatingPoint, ...]
    precision_at_recall: tuple[OperatingPoint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelCounts:
    """The numbers of samples and of texts of each label, by split.

    notes   unusual properties of labels and texts
    """

    labels: tuple[str, ...]
    samples: dict[str, tuple[int, ...]]
    texts: dict[str, tuple[int, ...]]
    notes: tuple[str, ...] = ()

    @property
    def folded(self) -> bool:
        """Whether texts have several samples."""
        return self.samples != self.texts


Value = TypeVar("Value", ClassReport, TwoClassCurves)
Made = TypeVar("Made")


def by_view(found: Iterable[Value]) -> dict[str, Value]:
    """Sort by split, whole texts before fragments; return by the view's name."""

    def place(each: Value) -> tuple[int, str, bool]:
        return split_position(each.view.split), each.view.split, each.view.level == "fragment"

    return {each.view.name: each for each in sorted(found, key=place)}


def class_report(name: str, document: Mapping[str, Any]) -> ClassReport:
    matrix, mistakes = document["confusion"], document.get("confusions", ())
    made = {
        "view": _view(name, document),
        "labels": tuple(map(str, document["labels"])),
        "confusion": None if matrix is None else tuple(map(tuple, matrix)),
        "mistakes": tuple((str(true), str(found), int(count)) for true, found, count in mistakes),
        "classes": tuple(_known(ClassScore, row, label=str(row["label"])) for row in document["classes"]),
    }
    return _known(ClassReport, document, **made)


def two_class_curves(name: str, document: Mapping[str, Any]) -> TwoClassCurves:
    roc, precision_recall = document["roc"], document["precision_recall"]
    points = {
        key: tuple(OperatingPoint(**point) for point in document[key])
        for key in ("recall_at_precision", "precision_at_recall")
    }
    return _known(
        TwoClassCurves,
        document,
        view=_view(name, document),
        positive=str(document["positive"]),
        roc=(tuple(roc["false_positive_rate"]), tuple(roc["true_positive_rate"])),
        precision_recall=(tuple(precision_recall["recall"]), tuple(precision_recall["precision"])),
        **points,
    )


def _view(name: str, document: Mapping[str, Any]) -> View:
    return View(name=name, split=str(document.get("split", name)), level=document.get("level"))


def _known(kind: type[Made], document: Mapping[str, Any], **made: Any) -> Made:
    """Make a data class from the keys of a document that are its fields; `made` replaces some."""
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: document[name] for name in names if name in document} | made)


def label_counts(document: Mapping[str, Any]) -> LabelCounts:
    splits = sorted(document["splits"], key=lambda split: (split_position(split), split))
    return LabelCounts(
        labels=tuple(map(str, document["labels"])),
        samples={split: tuple(document["splits"][split]["samples"]) for split in splits},
        texts={split: tuple(document["splits"][split]["texts"]) for split in splits},
        notes=tuple(str(note) for note in document.get("notes", ())),
    )
