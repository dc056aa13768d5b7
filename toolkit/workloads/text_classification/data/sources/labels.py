"""Count the rows that are skipped, because they have no known label or no text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from toolkit.errors import DataError
from toolkit.system.output.amounts import counted
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data.sources.formats.table import Row
from toolkit.workloads.text_classification.data.sources.formats.wording import short, shown, similar

#: Most unknown labels in a manifest.
_IN_MANIFEST = 20
#: Most unknown labels in a summary.
_IN_SUMMARY = 5


@dataclass(slots=True, kw_only=True)
class Count:
    """A number of rows, and the file and line of the first one."""

    rows: int = 0
    first: str = ""

    def add(self, place: str, rows: int = 1) -> None:
        self.first = self.first or place
        self.rows += rows


@dataclass(slots=True, kw_only=True)
class Skipped:
    """The rows that are left out; each is counted for the first reason that applies."""

    empty_labels: Count = field(default_factory=Count)
    empty_texts: Count = field(default_factory=Count)
    unknown_labels: dict[str, Count] = field(default_factory=dict)

    def unknown(self, label: str, place: str, rows: int = 1) -> None:
        """Count rows with a label that is not one of the labels to learn."""
        self.unknown_labels.setdefault(label, Count()).add(place, rows)

    def to_json(self) -> dict[str, Any]:
        """Return the entry of the manifest, with the most frequent unknown labels."""
        by_rows = sorted(self.unknown_labels.items(), key=lambda item: -item[1].rows)
        return {
            "unknown_labels": {
                "rows": sum(count.rows for count in self.unknown_labels.values()),
                "labels": [{"label": short(name), **asdict(count)} for name, count in by_rows[:_IN_MANIFEST]],
            },
            "empty_labels": asdict(self.empty_labels),
            "empty_texts": asdict(self.empty_texts),
        }


def describe_skipped(found: Mapping[str, Any]) -> list[str]:
    """Describe the result of `Skipped.to_json`, one line for each reason that applied."""
    unknown, labels, texts = (found[name] for name in ("unknown_labels", "empty_labels", "empty_texts"))
    lines = []
    if unknown["rows"]:
        named = [f"{each['label']!r} {each['rows']:,}" for each in unknown["labels"][:_IN_SUMMARY]]
        more = ", …" if len(unknown["labels"]) > _IN_SUMMARY else ""
        first = unknown["labels"][0]["first"]
        lines.append(
            f"left out {counted(unknown['rows'], 'row')} with unknown labels: {', '.join(named)}{more}; "
            f"one is {first}"
        )
    for count, what in ((labels, "without a label"), (texts, "without a text")):
        if count["rows"]:
            lines.append(f"left out {counted(count['rows'], 'row')} {what}, from {count['first']} on")
    return lines


def is_empty(text: str) -> bool:
    """Whether a text or label is empty or only white space."""
    return not text or text.isspace()


def count_empty(path: Path, row: Row, data: TextTable, skipped: Skipped) -> bool:
    """Return whether a row's label or text is empty, and count the row as skipped if so.

    Raises DataError for an empty label if unknown labels are refused.
    """
    if is_empty(row.label):
        if data.unknown_labels == "refuse":
            raise DataError(
                f"{path}:{row.line}: the label is empty; correct the row, or set data.unknown_labels: skip"
            )
        skipped.empty_labels.add(f"{path}:{row.line}")
        return True
    if is_empty(row.text):
        skipped.empty_texts.add(f"{path}:{row.line}")
        return True
    return False


def refuse_unknown(place: str, label: str, labels: tuple[str, ...]) -> DataError:
    """Return the error of a label that is not one of `data.labels`."""
    hint = f"; {near}" if (near := similar(label, labels)) else ""
    return DataError(
        f"{place}: label {short(label)!r} is not one of data.labels ({shown(labels)}){hint}. "
        "Correct it, or set data.unknown_labels: skip"
    )


def refuse_untrained(place: str, label: str, data: TextTable) -> DataError:
    """Return the error of a label that is not in the training split."""
    otherwise = "" if data.path is None else " or data.stratify: true,"
    return DataError(
        f"{place}: label {short(label)!r} does not occur in the training split, so it cannot be learnt. "
        f"Set data.labels to all labels,{otherwise} or data.unknown_labels: skip, or correct the row"
    )


def nothing_known(
    path: Path, data: TextTable, labels: tuple[str, ...], skipped: Skipped, *, is_trained: bool = False
) -> DataError:
    """Return the error of a file, or of a split of it, without usable rows.

    is_trained   whether the labels are from a trained run
    """
    unknown = skipped.unknown_labels
    if not unknown:
        empty = ((skipped.empty_labels, data.label_column), (skipped.empty_texts, data.text_column))
        count, column = max(empty, key=lambda each: each[0].rows)
        return DataError(
            f"{path}: no row can be used: {column!r} is empty in {counted(count.rows, 'row')}, from "
            f"{count.first} on. Are data.text_column and data.label_column right?"
        )
    first = next(iter(unknown.values())).first
    what = "no row" if data.labels is not None else "there is a split in which no row"
    whose = "" if data.labels is not None else "of the training split "
    cure = "Write labels that the run has learnt" if is_trained else "Set data.labels to those of the data"
    return DataError(
        f"{path}: {what} has one of the labels {whose}({shown(labels)}); found: {shown(sorted(unknown))} "
        f"(the first one at {first}). {cure}, or is column {data.label_column!r} (data.label_column) not the "
        "label?"
    )
