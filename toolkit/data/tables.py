"""The tables of a prepared set's database that are written when all texts have been read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from toolkit.data.sources import Source
from toolkit.data.survey import Survey
from toolkit.data.writer import Fragments

_SAMPLE = "INSERT INTO samples VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"

Numbers = npt.NDArray[np.integer]


def write_sources(database: sqlite3.Connection, sources: Sequence[Source], survey: Survey) -> None:
    """Write the files and the names of the labels."""
    files = [
        (number, str(source.path), source.sha256, rows)
        for number, (source, rows) in enumerate(zip(sources, survey.source_rows, strict=True))
    ]
    database.executemany("INSERT INTO sources VALUES (?, ?, ?, ?)", files)
    database.executemany("INSERT INTO labels VALUES (?, ?)", enumerate(survey.labels))


def write_label_counts(
    database: sqlite3.Connection, survey: Survey, fragments: Fragments, splits: npt.NDArray[np.int8]
) -> None:
    """Write how many texts and samples of each label are in each split, zeros included."""
    count = len(survey.splits)
    # One row for each text that has a fragment in a split.
    pairs = np.unique(fragments.text_ids * count + splits)
    texts = _table(survey, survey.text_label[pairs // count], pairs % count)
    samples = _table(survey, survey.text_label[fragments.text_ids], splits)
    rows = [
        (split, label, int(texts[number, label]), int(samples[number, label]))
        for number, split in enumerate(survey.splits)
        for label in range(len(survey.labels))
    ]
    database.executemany("INSERT INTO label_counts VALUES (?, ?, ?, ?)", rows)


def write_tokens(database: sqlite3.Connection, tokens: Iterable[tuple[str, int]]) -> None:
    """Write the token of every id, and how often it stands in the training split."""
    rows = ((number, token, count) for number, (token, count) in enumerate(tokens))
    database.executemany("INSERT INTO tokens VALUES (?, ?, ?)", rows)


class Lists:
    """Writes ids as lists in JSON, with one look-up for all of their digits.

    ids  how many there are
    """

    def __init__(self, ids: int) -> None:
        #: Of every id its digits and a comma, filled up with zero bytes.
        self._digits = np.array([f"{number}, " for number in range(ids)], dtype="S")
        self._widths = np.char.str_len(self._digits)

    def of(self, ids: Numbers, ends: Numbers) -> Iterator[str]:
        """Yield the lists of consecutive ids that end at these places."""
        joined = self._digits[ids].tobytes().translate(None, b"\0").decode("ascii")
        places = np.cumsum(self._widths[ids])[ends - 1].tolist()
        for a, b in pairwise([0, *places]):
            yield f"[{joined[a : b - 2]}]"


def write_samples(
    database: sqlite3.Connection,
    survey: Survey,
    fragments: Fragments,
    splits: npt.NDArray[np.int8],
    first: int,
    lists: Sequence[str],
) -> None:
    """Write consecutive samples, from number `first` on, with the lists of their ids."""
    part = slice(first, first + len(lists))
    text_ids = fragments.text_ids[part]
    columns = (
        range(part.start, part.stop),
        text_ids.tolist(),
        (np.arange(part.start, part.stop) - np.searchsorted(fragments.text_ids, text_ids)).tolist(),
        lists,
        fragments.lengths[part].tolist(),
        survey.text_label[text_ids].tolist(),
        map(survey.splits.__getitem__, splits[part].tolist()),
        (fragments.firsts[part] + 1).tolist(),
        fragments.characters[part].tolist(),
    )
    database.executemany(_SAMPLE, zip(*columns, strict=True))


def _table(survey: Survey, labels: Numbers, splits: Numbers) -> npt.NDArray[np.int64]:
    """How many there are of each split and label, [splits, labels]."""
    shape = len(survey.splits), len(survey.labels)
    cells = splits.astype(np.int64) * shape[1] + labels
    return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape).astype(np.int64, copy=False)
