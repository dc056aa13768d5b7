"""The first reading of the sources: every fault found, labels and splits settled, nothing written."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from toolkit.config.kinds import TextTable
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
    """What is known of every sample before its text is looked at.

    labels       names; a sample's label is a number into it
    splits       names; a sample's split is a number into it
    sample_label [n] int32
    sample_split [n] int8
    source_rows  rows of each source; samples are numbered through the sources in their order
    """

    labels: tuple[str, ...]
    splits: tuple[str, ...]
    sample_label: npt.NDArray[np.int32]
    sample_split: npt.NDArray[np.int8]
    source_rows: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.sample_label)

    def counts(self) -> npt.NDArray[np.int64]:
        """Samples by split and label, [splits, labels]."""
        cells = self.sample_split.astype(np.int64) * len(self.labels) + self.sample_label
        flat = np.bincount(cells, minlength=len(self.splits) * len(self.labels))
        return flat.reshape(len(self.splits), len(self.labels)).astype(np.int64, copy=False)


@dataclass(slots=True)
class _Found:
    """Labels as they were met: numbered by first appearance, and where that was."""

    numbers: dict[str, int] = field(default_factory=dict)
    places: list[str] = field(default_factory=list)
    samples: array[int] = field(default_factory=lambda: array("i"))


def survey(data: TextTable, sources: Sequence[Source], progress: Progress) -> Survey:
    """Read all sources once. Memory: 13 bytes a sample. Raises DataError at the first fault."""
    found, rows = _Found(), []
    for source in sources:
        before = len(found.samples)
        _read_labels(source, data, found, progress)
        rows.append(len(found.samples) - before)
    met = np.frombuffer(found.samples, dtype=np.intc)
    names = split_names(data, sources)
    sample_split = _splits(data, sources, rows, met)
    labels = data.labels
    if labels is None:
        in_training = set(np.unique(met[sample_split == names.index(TRAIN)]).tolist())
        labels = tuple(sorted(label for label, number in found.numbers.items() if number in in_training))
    final = _label_numbers(found, labels)
    return Survey(
        labels=labels,
        splits=names,
        sample_label=final[met],
        sample_split=sample_split,
        source_rows=tuple(rows),
    )


def _read_labels(source: Source, data: TextTable, found: _Found, progress: Progress) -> None:
    numbers, samples = found.numbers, found.samples
    for row in read_rows(source.path, data):
        number = numbers.get(row.label)
        if number is None:
            number = numbers[row.label] = len(numbers)
            found.places.append(f"{source.path}:{row.line}")
            if number == _MOST_LABELS:
                raise DataError(
                    f"{found.places[-1]}: more than {_MOST_LABELS} different labels up to here; "
                    f"does column {data.label_column!r} (data.label_column) hold the labels?"
                )
        samples.append(number)
        if len(samples) % REPORT_EVERY == 0:
            progress("read", len(samples), None)
    progress("read", len(samples), None)


def _splits(
    data: TextTable, sources: Sequence[Source], rows: Sequence[int], met: npt.NDArray[np.intc]
) -> npt.NDArray[np.int8]:
    if sources[0].split is not None:
        return np.repeat(np.arange(len(sources), dtype=np.int8), rows)
    shares = list(data.splits.values())
    splits = assign_splits(len(met), shares, data.split_seed, met if data.stratify else None)
    sizes = np.bincount(splits, minlength=len(shares))
    for (name, share), size in zip(data.splits.items(), sizes.tolist(), strict=True):
        if share > 0 and not size:
            raise DataError(
                f"{sources[0].path} has {len(met)} rows, too few for the splits {data.splits}: "
                f"none is left for {name!r}. Use more rows, or set data.splits.{name} to 0"
            )
    return splits


def _label_numbers(found: _Found, labels: tuple[str, ...]) -> npt.NDArray[np.int32]:
    """Final number of each label met. Raises DataError for one that is none of `labels`."""
    final: Mapping[str, int] = {label: number for number, label in enumerate(labels)}
    for label, number in found.numbers.items():
        if label not in final:
            raise DataError(
                f"{found.places[number]}: label {label!r} does not occur in the training split, so "
                "nothing can be learnt of it. Set data.labels to all labels, or data.stratify: true, "
                "or correct the row"
            )
    return np.array([final[label] for label in found.numbers], dtype=np.int32)
