"""The second reading of the sources: texts into the database, their tokens into a file.

The tokens carry provisional numbers: which of them get an id is known only when all are counted.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from toolkit.config.kinds import TextTable
from toolkit.data.encoders import Encoder
from toolkit.data.folding import fold
from toolkit.data.labels import is_empty
from toolkit.data.sources import Progress, Source
from toolkit.data.survey import Survey
from toolkit.data.table import Row, read_rows
from toolkit.data.tokens import Pieces
from toolkit.errors import DataError

PROVISIONAL = "tokens.provisional"
PROVISIONAL_DTYPE = np.dtype(np.uint32)

#: A batch is encoded when it has so many rows, or texts of so many characters: a pretrained tokenizer takes
#: some hundred bytes for each character of a batch.
_BATCH_ROWS = 1 << 9
_BATCH_CHARACTERS = 1 << 19
_INSERT = "INSERT INTO texts (id, source, line, text, label, split) VALUES (?, ?, ?, ?, ?, ?)"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fragments:
    """The samples, in the order of their texts.

    text_ids    [n] int64, ascending
    lengths     [n] int32, tokens, special ones included
    firsts      [n] int32, where the fragment's own text begins in its text (code points)
    characters  [n] int32, how long it is
    texts       how many texts there are
    cut_texts   texts of which the end was cut off
    """

    text_ids: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int32]
    firsts: npt.NDArray[np.int32]
    characters: npt.NDArray[np.int32]
    texts: int
    cut_texts: int

    def __len__(self) -> int:
        return len(self.lengths)


@dataclass(slots=True, kw_only=True)
class TextWriter:
    """Writes texts in the order of the survey. Memory: a batch of texts, and 20 bytes a sample."""

    data: TextTable
    survey: Survey
    encoder: Encoder
    database: sqlite3.Connection
    stream: BinaryIO
    _rows: list[Row] = field(default_factory=list)
    _characters: int = 0
    _written: int = 0
    _cut_texts: int = 0
    _tokens: array[int] = field(default_factory=lambda: array("I"))
    _text_ids: array[int] = field(default_factory=lambda: array("q"))
    _lengths: array[int] = field(default_factory=lambda: array("i"))
    _firsts: array[int] = field(default_factory=lambda: array("i"))
    _counts: array[int] = field(default_factory=lambda: array("i"))

    def write(self, number: int, source: Source, progress: Progress) -> None:
        """Write all texts of one source. Raises DataError where there are more than were surveyed."""
        labels = frozenset(self.survey.labels)
        for row in read_rows(source.path, self.data):
            if row.label not in labels or is_empty(row.text):
                continue
            self._rows.append(row)
            self._characters += len(row.text)
            if len(self._rows) == _BATCH_ROWS or self._characters >= _BATCH_CHARACTERS:
                self._flush(number)
                progress("tokenize", self._written, len(self.survey))
        self._flush(number)
        progress("tokenize", self._written, len(self.survey))

    def fragments(self) -> Fragments:
        """What was written so far."""
        return Fragments(
            text_ids=np.frombuffer(self._text_ids, dtype=np.int64),
            lengths=np.frombuffer(self._lengths, dtype=np.int32),
            firsts=np.frombuffer(self._firsts, dtype=np.int32),
            characters=np.frombuffer(self._counts, dtype=np.int32),
            texts=self._written,
            cut_texts=self._cut_texts,
        )

    def _flush(self, source: int) -> None:
        """Encode and write the batch."""
        first, stop = self._written, self._written + len(self._rows)
        if stop > len(self.survey):
            raise DataError("the data files changed while they were read; start again when they are at rest")
        texts = [row.text for row in self._rows]
        for number, (text, pieces) in enumerate(
            zip(texts, self.encoder.encode(texts), strict=True), start=first
        ):
            self._add(number, text, pieces)
        self._insert(first, stop, source)
        self.stream.write(self._tokens)
        self._written, self._characters = stop, 0
        del self._tokens[:]
        self._rows.clear()

    def _add(self, text_id: int, text: str, pieces: Pieces) -> None:
        """Cut one text into samples."""
        numbers = pieces.numbers
        room = self.data.max_tokens - len(self.encoder.before) - len(self.encoder.after)
        if len(numbers) <= room:
            self._sample(text_id, numbers, 0, len(text))
        elif self.data.fold == "none":
            self._cut_texts += 1
            self._sample(text_id, numbers[:room], 0, len(text))
        else:
            starts, ends = pieces.spans()
            for a, b in pairwise(fold(text, ends, room, self.data.fold)):
                self._sample(text_id, numbers[a:b], *_stripped(text, int(starts[a]), int(ends[b - 1])))

    def _sample(self, text_id: int, numbers: array[int], start: int, stop: int) -> None:
        before = len(self._tokens)
        self._tokens.extend(self.encoder.before)
        self._tokens.extend(numbers)
        self._tokens.extend(self.encoder.after)
        self._lengths.append(len(self._tokens) - before)
        self._text_ids.append(text_id)
        self._firsts.append(start)
        self._counts.append(stop - start)

    def _insert(self, first: int, stop: int, source: int) -> None:
        survey = self.survey
        splits: list[str | None] = [None] * (stop - first)
        if survey.text_split is not None:
            splits = [survey.splits[split] for split in survey.text_split[first:stop]]
        labels = survey.text_label[first:stop].tolist()
        rows = zip(range(first, stop), self._rows, labels, splits, strict=True)
        self.database.executemany(
            _INSERT,
            ((number, source, row.line, row.text, label, split) for number, row, label, split in rows),
        )


def _stripped(text: str, start: int, stop: int) -> tuple[int, int]:
    """Start and end of a stretch of text without the blanks around it, which some tokens begin with."""
    own = text[start:stop].lstrip()
    return stop - len(own), stop - len(own) + len(own.rstrip())


def write_texts(
    folder: Path,
    database: sqlite3.Connection,
    data: TextTable,
    sources: Iterable[Source],
    survey: Survey,
    encoder: Encoder,
    progress: Progress,
) -> Fragments:
    """Write the texts of all sources, and their tokens under provisional numbers. Raises DataError."""
    with open(folder / PROVISIONAL, "wb") as stream:
        writer = TextWriter(data=data, survey=survey, encoder=encoder, database=database, stream=stream)
        for number, source in enumerate(sources):
            writer.write(number, source, progress)
            source.check_unchanged()
    return writer.fragments()
