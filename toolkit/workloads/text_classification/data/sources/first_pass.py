"""The first read of the sources: it finds errors, determines labels and splits, and writes nothing."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from toolkit.data.sources.source_files import TEST
from toolkit.errors import DataError
from toolkit.workload import Progress
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data.sources.formats.table import Row
from toolkit.workloads.text_classification.data.sources.labels import (
    Skipped,
    count_empty,
    is_empty,
    nothing_known,
    refuse_unknown,
    refuse_untrained,
)
from toolkit.workloads.text_classification.data.sources.source_files import TRAIN, Source
from toolkit.workloads.text_classification.data.sources.split_sizes import check_sizes
from toolkit.workloads.text_classification.data.sources.splits import SplitNumbers, assign_splits
from toolkit.workloads.text_classification.data.sources.table_warnings import notable
from toolkit.workloads.text_classification.data.sources.text_hashes import TextHashes

#: Rows between two calls of the progress function.
REPORT_EVERY = 1 << 14
#: Limit for labels. More labels are an error: a wrong column may have a different value in each row.
_MOST_LABELS = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Survey:
    """Labels and splits of all texts after the first read. Skipped rows are not texts.

    labels       names of the labels, in the order of their codes
    splits       names of the splits
    text_label   [n] int32, codes of labels; texts are numbered through all sources
    text_split   [n] int8, positions in `splits`; None if fragments are split instead of texts
    source_rows  number of rows of each source
    skipped      the rows that were left out
    notable      unusual properties, as in the manifest
    """

    labels: tuple[str, ...]
    splits: tuple[str, ...]
    text_label: npt.NDArray[np.int32]
    text_split: SplitNumbers | None
    source_rows: tuple[int, ...]
    skipped: Skipped
    notable: dict[str, Any]

    def __len__(self) -> int:
        return len(self.text_label)


def survey(data: TextTable, sources: Sequence[Source], progress: Progress) -> Survey:
    """Read all sources once. Memory: 21 bytes per text, and 12 more for each of the first 20 million.

    Raises DataError at the first error.
    """
    reading = _Reading(data, sources)
    for source in sources:
        reading.read(source, source.rows(data), progress)
    names = tuple(data.splits) if sources[0].split is None else tuple(str(each.split) for each in sources)
    texts, files = reading.texts()
    places = np.arange(len(texts))
    if data.labels is not None:
        # Before splitting, so that the shares apply to the remaining rows.
        kept = reading.known(texts, data.labels)
        texts, files, places = texts[kept], files[kept], places[kept]
    reading.check_left(files, data.labels or ())
    splits: SplitNumbers | None = files
    if sources[0].split is None:
        splits = None if data.split_unit == "fragment" else cut(data, sources, texts)
    labels = data.labels
    if labels is None:
        labels = reading.names(texts if splits is None else texts[splits == names.index(TRAIN)])
        kept = reading.known(texts, labels)
        texts, files, places = texts[kept], files[kept], places[kept]
        splits = None if splits is None else splits[kept]
        reading.check_left(files, labels)
        reading.check_splits(splits, labels)
    text_label = reading.codes(labels)[texts]
    counts: dict[str, list[int]] = {}
    shared: list[dict[str, Any]] = []
    if splits is not None:
        counts = _counts(names, labels, text_label, splits)
        shared = reading.hashes.shared(names, splits, files, places)
    return Survey(
        labels=labels,
        splits=names,
        text_label=text_label,
        text_split=splits,
        source_rows=tuple(reading.rows),
        skipped=reading.skipped,
        notable=notable(labels, counts, shared),
    )


def _counts(
    names: Sequence[str], labels: Sequence[str], text_label: npt.NDArray[np.int32], splits: SplitNumbers
) -> dict[str, list[int]]:
    """Return the number of texts of each label, by split; splits without texts are left out."""
    counts = {
        name: np.bincount(text_label[splits == number], minlength=len(labels)).tolist()
        for number, name in enumerate(names)
    }
    return {name: of_label for name, of_label in counts.items() if any(of_label)}


def cut(data: TextTable, sources: Sequence[Source], labels: npt.NDArray[np.integer]) -> SplitNumbers:
    """Assign a split to each text or fragment. Raises DataError if a split with a share would be empty."""
    check_sizes(sources[0].path, len(labels), data.splits)
    shares = list(data.splits.values())
    return assign_splits(len(labels), shares, data.split_seed, labels if data.stratify else None)


class _Reading:
    """The labels of all rows. Labels are numbered by first appearance, of which file and line are stored.

    rows  number of rows of each source
    """

    def __init__(self, data: TextTable, sources: Sequence[Source]) -> None:
        self.data, self.sources = data, sources
        self.rows: list[int] = []
        self.skipped = Skipped()
        self.hashes = TextHashes([source.path for source in sources])
        self._numbers: dict[str, int] = {}
        self._places: list[str] = []
        self._texts = array("i")
        self._ends: list[int] = []

    def read(self, source: Source, found: Iterable[Row], progress: Progress) -> None:
        """Store the label of every row with a label and a text."""
        rows, before, known, note = 0, sum(self.rows), self._numbers.get, self.hashes.note
        for rows, row in enumerate(found, start=1):
            number = known(row.label)
            # A label with a number is not empty.
            if number is None or is_empty(row.text):
                is_left_out = count_empty(source.path, row, self.data, self.skipped)
                number = None if is_left_out else self._new(source, row)
            if number is not None:
                self._texts.append(number)
                note(row)
            if rows % REPORT_EVERY == 0:
                progress("read", before + rows, None)
        self.rows.append(rows)
        self._ends.append(len(self._texts))
        progress("read", before + rows, None)

    def texts(self) -> tuple[npt.NDArray[np.intc], npt.NDArray[np.int8]]:
        """Return the numbers of label and of source for every row with a label and a text."""
        files = np.repeat(np.arange(len(self.rows), dtype=np.int8), np.diff(self._ends, prepend=0))
        return np.frombuffer(self._texts, dtype=np.intc), files

    def names(self, texts: npt.NDArray[np.intc]) -> tuple[str, ...]:
        """Return the labels of these texts, sorted."""
        numbers = set(np.flatnonzero(np.bincount(texts)).tolist())
        return tuple(sorted(label for label, number in self._numbers.items() if number in numbers))

    def codes(self, labels: Sequence[str]) -> npt.NDArray[np.int32]:
        """Return the code of every numbered label; -1 for a label that is not in `labels`."""
        codes = {label: code for code, label in enumerate(labels)}
        return np.array([codes.get(label, -1) for label in self._numbers], dtype=np.int32)

    def known(self, texts: npt.NDArray[np.intc], labels: tuple[str, ...]) -> npt.NDArray[np.bool_]:
        """Return whether each text has one of these labels. Others are counted as skipped, or refused."""
        kept = self.codes(labels)[texts] >= 0
        met = list(self._numbers)
        for number, rows in enumerate(np.bincount(texts[~kept]).tolist()):
            if rows and self.data.unknown_labels == "refuse":
                raise refuse_untrained(self._places[number], met[number], self.data)
            if rows:
                self.skipped.unknown(met[number], self._places[number], rows)
        return kept

    def check_left(self, files: npt.NDArray[np.int8], labels: tuple[str, ...]) -> None:
        """Raise DataError for a file without remaining rows."""
        for source, texts in zip(
            self.sources, np.bincount(files, minlength=len(self.sources)).tolist(), strict=True
        ):
            if not texts:
                # With a trained model, the whole file is the test split.
                is_trained = self.data.path is not None and source.split == TEST and source.part is None
                raise nothing_known(source.path, self.data, labels, self.skipped, is_trained=is_trained)

    def check_splits(self, splits: SplitNumbers | None, labels: tuple[str, ...]) -> None:
        """Raise DataError if one file is cut into splits and a split has no remaining row.

        This happens if training has none of its labels.
        """
        if splits is None or self.sources[0].split is not None:
            return
        sizes = np.bincount(splits, minlength=len(self.data.splits)).tolist()
        if any(share > 0 and not size for share, size in zip(self.data.splits.values(), sizes, strict=True)):
            raise nothing_known(self.sources[0].path, self.data, labels, self.skipped)

    def _new(self, source: Source, row: Row) -> int:
        """Number a new label. Raises DataError for a refused label, and for too many labels."""
        place, labels = f"{source.path}:{row.line}", self.data.labels
        if self.data.unknown_labels == "refuse" and labels is not None and row.label not in labels:
            raise refuse_unknown(place, row.label, labels)
        if len(self._numbers) == _MOST_LABELS:
            raise DataError(
                f"{place}: more than {_MOST_LABELS} different labels up to here; "
                f"does column {self.data.label_column!r} (data.label_column) hold the labels?"
            )
        self._places.append(place)
        return self._numbers.setdefault(row.label, len(self._numbers))
