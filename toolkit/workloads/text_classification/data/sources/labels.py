"""Rows that can be learnt from have a known label and a text; the others are counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from toolkit.errors import DataError
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data.sources.formats.table import Row
from toolkit.workloads.text_classification.data.sources.formats.wording import short, shown

#: Unknown labels that the manifest names, most frequent first.
_NAMED = 20
#: Those that a summary names.
_TOLD = 5


@dataclass(slots=True, kw_only=True)
class Count:
    """The number of rows, and the place of the first one."""

    rows: int = 0
    first: str = ""

    def add(self, place: str, rows: int = 1) -> None:
        self.first = self.first or place
        self.rows += rows


@dataclass(slots=True, kw_only=True)
class Skipped:
    """Rows that are left out, each by the first reason that applies."""

    empty_labels: Count = field(default_factory=Count)
    empty_texts: Count = field(default_factory=Count)
    unknown_labels: dict[str, Count] = field(default_factory=dict)

    def unknown(self, label: str, place: str, rows: int = 1) -> None:
        """Count rows with a label that is not among those to learn."""
        self.unknown_labels.setdefault(label, Count()).add(place, rows)

    def to_json(self) -> dict[str, Any]:
        """As in the manifest; of many unknown labels the most frequent ones."""
        by_rows = sorted(self.unknown_labels.items(), key=lambda item: -item[1].rows)
        return {
            "unknown_labels": {
                "rows": sum(count.rows for count in self.unknown_labels.values()),
                "labels": [
                    {"label": short(label), "rows": count.rows, "first": count.first}
                    for label, count in by_rows[:_NAMED]
                ],
            },
            "empty_labels": {"rows": self.empty_labels.rows, "first": self.empty_labels.first},
            "empty_texts": {"rows": self.empty_texts.rows, "first": self.empty_texts.first},
        }


def describe_skipped(found: Mapping[str, Any]) -> list[str]:
    """Describe what `Skipped.to_json` returned, a line for each reason that applied."""
    unknown, labels, texts = (found[name] for name in ("unknown_labels", "empty_labels", "empty_texts"))
    lines = []
    if unknown["rows"]:
        named = [f"{each['label']!r} {each['rows']:,}" for each in unknown["labels"][:_TOLD]]
        more = ", …" if len(unknown["labels"]) > _TOLD else ""
        first = unknown["labels"][0]["first"]
        lines.append(
            f"left out {unknown['rows']:,} rows with unknown labels: {', '.join(named)}{more}; one is {first}"
        )
    for count, what in ((labels, "without a label"), (texts, "without a text")):
        if count["rows"]:
            lines.append(f"left out {count['rows']:,} rows {what}, from {count['first']} on")
    return lines


def is_empty(text: str) -> bool:
    """Whether a field holds nothing but white space: no label, or no token to learn from."""
    return not text or text.isspace()


def count_empty(path: Path, row: Row, data: TextTable, skipped: Skipped) -> bool:
    """Count a row whose label or text is empty; return whether it is one.

    Raises DataError for an empty label where faulty labels are refused.
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
    """Say that a label is not one of `data.labels`."""
    return DataError(
        f"{place}: label {short(label)!r} is not one of data.labels ({shown(labels)}){_near(label, labels)}. "
        "Correct it, or set data.unknown_labels: skip"
    )


def refuse_untrained(place: str, label: str) -> DataError:
    """Say that the training split lacks a label."""
    return DataError(
        f"{place}: label {short(label)!r} does not occur in the training split, so it cannot be learnt. "
        "Set data.labels to all labels, or data.stratify: true, or data.unknown_labels: skip, or correct "
        "the row"
    )


def nothing_known(path: Path, data: TextTable, labels: tuple[str, ...], skipped: Skipped) -> DataError:
    """Say that no row of a file, or of a split cut from it, can be used."""
    unknown = skipped.unknown_labels
    if not unknown:
        return _all_empty(path, data, skipped)
    first = next(iter(unknown.values())).first
    what = "no row" if data.labels is not None else "there is a split in which no row"
    whose = "" if data.labels is not None else "of the training split "
    return DataError(
        f"{path}: {what} has one of the labels {whose}({shown(labels)}); found: {shown(sorted(unknown))} "
        f"(the first one at {first}). Set data.labels to the labels of the data, or is column "
        f"{data.label_column!r} (data.label_column) not the label?"
    )


def _all_empty(path: Path, data: TextTable, skipped: Skipped) -> DataError:
    found = ((skipped.empty_labels, data.label_column), (skipped.empty_texts, data.text_column))
    count, column = max(found, key=lambda each: each[0].rows)
    return DataError(
        f"{path}: no row can be used: {column!r} is empty in {count.rows} rows, from {count.first} on. "
        "Are data.text_column and data.label_column right?"
    )


def _near(label: str, labels: tuple[str, ...]) -> str:
    near = get_close_matches(label, labels, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
