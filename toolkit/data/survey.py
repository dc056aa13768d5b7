"""The first reading of the sources: every fault found, labels and splits settled, nothing written."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from toolkit.config.kinds import TextTable
from toolkit.data.labels import Skipped, count_empty, nothing_known, refuse_unknown, refuse_untrained
from toolkit.data.sources import TRAIN, Progress, Source, split_names
from toolkit.data.splits import assign_splits
from toolkit.data.table import read_rows
from toolkit.errors import DataError

#: Rows between two calls of the progress function.
REPORT_EVERY = 1 << 14
#: More labels than any classifier here has; a wrong column has as many as rows.
_MOST_LABELS = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Survey:
    """What is known of every text before it is looked at. Rows that are skipped have no number.

    labels       names; a text's label is a number into it
    splits       names; a text's split is a number into it
    text_label   [n] int32
    text_split   [n] int8; None where the fragments are split, not the texts
    source_rows  rows of each source; texts are numbered through the sources in their order
    skipped      what was left out
    """

    labels: tuple[str, ...]
    splits: tuple[str, ...]
    text_label: npt.NDArray[np.int32]
    text_split: npt.NDArray[np.int8] | None
    source_rows: tuple[int, ...]
    skipped: Skipped

    def __len__(self) -> int:
        return len(self.text_label)


@dataclass(slots=True)
class _Found:
    """Labels as they were met: numbered by first appearance, and where that was; rows with text."""

    numbers: dict[str, int] = field(default_factory=dict)
    places: list[str] = field(default_factory=list)
    texts: array[int] = field(default_factory=lambda: array("i"))


def survey(data: TextTable, sources: Sequence[Source], progress: Progress) -> Survey:
    """Read all sources once. Memory: 13 bytes a text. Raises DataError at the first fault."""
    found, skipped = _Found(), Skipped()
    rows: list[int] = []
    starts = [0]
    for source in sources:
        rows.append(_read_labels(source, data, found, skipped, sum(rows), progress))
        starts.append(len(found.texts))
    names = split_names(data, sources)
    met = np.frombuffer(found.texts, dtype=np.intc)
    file = np.repeat(np.arange(len(sources), dtype=np.int8), np.diff(starts))
    met, file = _drop_unknown(data, found, skipped, met, file)
    _check_left(data, sources, file, data.labels or (), skipped)
    splits = _splits(data, sources, file, met)
    labels = data.labels
    if labels is None:
        labels = _trained(found, met if splits is None else met[splits == names.index(TRAIN)])
        kept = _known(found, labels)[met]
        _skip_or_refuse(data, found, skipped, met[~kept])
        met, file, splits = met[kept], file[kept], None if splits is None else splits[kept]
        _check_left(data, sources, file, labels, skipped)
        _check_trained(data, sources, splits, labels, skipped)
    codes = {label: code for code, label in enumerate(labels)}
    final = np.array([codes.get(label, -1) for label in found.numbers], dtype=np.int32)
    return Survey(
        labels=labels,
        splits=names,
        text_label=final[met],
        text_split=splits,
        source_rows=tuple(rows),
        skipped=skipped,
    )


def _read_labels(
    source: Source, data: TextTable, found: _Found, skipped: Skipped, before: int, progress: Progress
) -> int:
    """Note the label of every row that has one and a text; return the number of rows."""
    numbers, rows = found.numbers, 0
    for rows, row in enumerate(read_rows(source.path, data), start=1):
        if rows % REPORT_EVERY == 0:
            progress("read", before + rows, None)
        if count_empty(source.path, row, data, skipped):
            continue
        number = numbers.get(row.label)
        if number is None:
            number = numbers[row.label] = len(numbers)
            _note_place(found, f"{source.path}:{row.line}", row.label, data)
        found.texts.append(number)
    progress("read", before + rows, None)
    return rows


def _note_place(found: _Found, place: str, label: str, data: TextTable) -> None:
    found.places.append(place)
    if data.unknown_labels == "refuse" and data.labels is not None and label not in data.labels:
        raise refuse_unknown(place, label, data.labels)
    if len(found.places) > _MOST_LABELS:
        raise DataError(
            f"{place}: more than {_MOST_LABELS} different labels up to here; "
            f"does column {data.label_column!r} (data.label_column) hold the labels?"
        )


def _drop_unknown(
    data: TextTable, found: _Found, skipped: Skipped, met: npt.NDArray[np.intc], file: npt.NDArray[np.int8]
) -> tuple[npt.NDArray[np.intc], npt.NDArray[np.int8]]:
    """Leave out what is none of the labels that are given: before splitting, so that shares hold."""
    if data.labels is None:
        return met, file
    kept = _known(found, data.labels)[met]
    _skip_or_refuse(data, found, skipped, met[~kept])
    return met[kept], file[kept]


def _known(found: _Found, labels: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    """Of every label that was met, by its number: whether it is one of these."""
    names = frozenset(labels)
    return np.array([label in names for label in found.numbers], dtype=np.bool_)


def _trained(found: _Found, met: npt.NDArray[np.intc]) -> tuple[str, ...]:
    """The labels that occur among these, sorted."""
    numbers = set(np.unique(met).tolist())
    return tuple(sorted(label for label, number in found.numbers.items() if number in numbers))


def _skip_or_refuse(data: TextTable, found: _Found, skipped: Skipped, unknown: npt.NDArray[np.intc]) -> None:
    names = list(found.numbers)
    for number, rows in enumerate(np.bincount(unknown, minlength=0).tolist()):
        if rows and data.unknown_labels == "refuse":
            raise refuse_untrained(found.places[number], names[number])
        if rows:
            skipped.unknown(names[number], found.places[number], rows)


def _check_left(
    data: TextTable,
    sources: Sequence[Source],
    file: npt.NDArray[np.int8],
    labels: tuple[str, ...],
    skipped: Skipped,
) -> None:
    """Raise DataError for a file of which nothing is left."""
    for source, texts in zip(sources, np.bincount(file, minlength=len(sources)), strict=True):
        if not texts:
            raise nothing_known(source.path, data, labels, skipped)


def _check_trained(
    data: TextTable,
    sources: Sequence[Source],
    splits: npt.NDArray[np.int8] | None,
    labels: tuple[str, ...],
    skipped: Skipped,
) -> None:
    """Raise DataError for a split of which nothing is left, because training lacks all of its labels."""
    if splits is None or sources[0].split is not None:
        return
    sizes = np.bincount(splits, minlength=len(data.splits)).tolist()
    if any(share > 0 and not size for share, size in zip(data.splits.values(), sizes, strict=True)):
        raise nothing_known(sources[0].path, data, labels, skipped)


def _splits(
    data: TextTable, sources: Sequence[Source], file: npt.NDArray[np.int8], met: npt.NDArray[np.intc]
) -> npt.NDArray[np.int8] | None:
    """The split of every text; None where fragments are split."""
    if sources[0].split is not None:
        return file
    return None if data.split_unit == "fragment" else cut(data, sources, met)


def cut(data: TextTable, sources: Sequence[Source], labels: npt.NDArray[np.integer]) -> npt.NDArray[np.int8]:
    """Assign a split to each of so many texts or fragments. Raises DataError where one gets none."""
    shares = list(data.splits.values())
    splits = assign_splits(len(labels), shares, data.split_seed, labels if data.stratify else None)
    sizes = np.bincount(splits, minlength=len(shares))
    for (name, share), size in zip(data.splits.items(), sizes.tolist(), strict=True):
        if share > 0 and not size:
            raise DataError(
                f"{sources[0].path} has {len(labels)} rows to learn from, too few for the splits "
                f"{data.splits}: none is left for {name!r}. Use more rows, or set data.splits.{name} to 0"
            )
    return splits
