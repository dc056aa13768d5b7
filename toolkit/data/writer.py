"""Tokenizing rows in batches, into a database table and a file of provisional token numbers.

The numbers are given as tokens are met; which tokens get an id is known only when all are counted.
"""

from __future__ import annotations

import itertools
import sqlite3
from array import array
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from toolkit.config.kinds import TextTable
from toolkit.data.sources import TRAIN, Progress
from toolkit.data.survey import Survey
from toolkit.data.table import Row
from toolkit.data.tokens import UNK_ID, Vocabulary, tokenizer
from toolkit.errors import DataError

#: A batch is written when it has so many rows, or texts of so many characters.
_BATCH_ROWS = 1 << 13
_BATCH_CHARACTERS = 1 << 23
#: Stands in for the tokens of an empty text; the tokens that are met count from 1.
_NO_TOKEN = 0
_INSERT = "INSERT INTO samples (id, source, line, text, label, length, split) VALUES (?, ?, ?, ?, ?, ?, ?)"


def _numbering() -> defaultdict[str, int]:
    return defaultdict(itertools.count(_NO_TOKEN + 1).__next__)


@dataclass(slots=True, kw_only=True)
class SampleWriter:
    """Writes samples in the order of the survey, and counts their tokens.

    Memory: a batch of texts, the distinct tokens, and 4 bytes a sample.
    """

    data: TextTable
    survey: Survey
    database: sqlite3.Connection
    stream: BinaryIO
    lengths: npt.NDArray[np.int32] = field(init=False)
    written: int = 0
    empty_texts: int = 0
    cut_texts: int = 0
    _numbers: defaultdict[str, int] = field(default_factory=_numbering)
    _train_counts: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    _lines: list[int] = field(default_factory=list)
    _texts: list[str] = field(default_factory=list)
    _characters: int = 0
    _ends: array[int] = field(default_factory=lambda: array("q"))
    _tokens: array[int] = field(default_factory=lambda: array("I"))

    def __post_init__(self) -> None:
        self.lengths = np.zeros(len(self.survey), dtype=np.int32)

    def write(self, source: int, rows: Iterable[Row], progress: Progress) -> None:
        """Write all rows of one source. Raises DataError where there are more than were surveyed."""
        cut = tokenizer(self.data.tokenizer, lowercase=self.data.lowercase)
        for row in rows:
            self._add(row, cut(row.text))
            if len(self._texts) == _BATCH_ROWS or self._characters >= _BATCH_CHARACTERS:
                self._flush(source)
                progress("tokenize", self.written, len(self.survey))
        self._flush(source)
        progress("tokenize", self.written, len(self.survey))

    @property
    def train_tokens(self) -> int:
        """Tokens of the training samples written so far."""
        return int(self._train_counts.sum())

    def vocabulary(self) -> Vocabulary:
        """The vocabulary of the training samples written so far. Raises DataError where it is empty."""
        counts = dict(zip(self._numbers, self._train_counts[_NO_TOKEN + 1 :].tolist(), strict=True))
        vocabulary = Vocabulary.from_counts(
            counts, min_count=self.data.min_count, max_size=self.data.max_vocabulary
        )
        if not vocabulary.tokens:
            raise DataError(
                f"no token of the training split stands in it {self.data.min_count} times or more "
                f"({self.train_tokens} tokens in all); lower data.min_count, or is column "
                f"{self.data.text_column!r} (data.text_column) not the text?"
            )
        return vocabulary

    def final_ids(self, vocabulary: Vocabulary) -> npt.NDArray[np.int64]:
        """The id of every provisional number."""
        return np.concatenate([[UNK_ID], vocabulary.encode(self._numbers)])

    def _add(self, row: Row, tokens: list[str]) -> None:
        if len(tokens) > self.data.max_tokens:
            del tokens[self.data.max_tokens :]
            self.cut_texts += 1
        if tokens:
            self._tokens.extend(map(self._numbers.__getitem__, tokens))
        else:
            self._tokens.append(_NO_TOKEN)
            self.empty_texts += 1
        self._lines.append(row.line)
        self._texts.append(row.text)
        self._ends.append(len(self._tokens))
        self._characters += len(row.text)

    def _flush(self, source: int) -> None:
        """Write the batch: rows to the database, numbers to the stream, counts of the training split."""
        first, stop = self.written, self.written + len(self._texts)
        if stop > len(self.survey):
            raise DataError("the data files changed while they were read; start again when they are at rest")
        lengths = np.diff(self._ends, prepend=0)
        splits = self.survey.sample_split[first:stop]
        self._insert(first, source, lengths, splits)
        self.lengths[first:stop] = lengths
        self._count(np.array(self._tokens)[np.repeat(splits == self.survey.splits.index(TRAIN), lengths)])
        self.stream.write(self._tokens)
        self.written, self._characters = stop, 0
        for batch in (self._lines, self._texts, self._ends, self._tokens):
            del batch[:]

    def _insert(
        self, first: int, source: int, lengths: npt.NDArray[np.int64], splits: npt.NDArray[np.int8]
    ) -> None:
        columns = (
            range(first, first + len(splits)),
            [source] * len(splits),
            self._lines,
            self._texts,
            self.survey.sample_label[first : first + len(splits)].tolist(),
            lengths.tolist(),
            [self.survey.splits[split] for split in splits],
        )
        self.database.executemany(_INSERT, zip(*columns, strict=True))

    def _count(self, tokens: npt.NDArray[np.uint32]) -> None:
        counts = np.bincount(tokens, minlength=_NO_TOKEN + 1 + len(self._numbers))
        counts[: len(self._train_counts)] += self._train_counts
        self._train_counts = counts
