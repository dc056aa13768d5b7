"""The second reading of the sources: texts into the database, their tokens into a file.

The tokens carry provisional numbers: which of them get an id is known only when all are counted.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, repeat
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from toolkit.errors import DataError
from toolkit.nlp.tokens import NUMBER, Pieces, Places
from toolkit.workload import Progress
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data.encoders import Encoder
from toolkit.workloads.text_classification.data.folding import fold
from toolkit.workloads.text_classification.data.sources.first_pass import Survey
from toolkit.workloads.text_classification.data.sources.formats.table import Row
from toolkit.workloads.text_classification.data.sources.labels import is_empty
from toolkit.workloads.text_classification.data.sources.source_files import Rows, Source

PROVISIONAL = "tokens.provisional"

#: A batch is encoded when it has this many rows or characters: a pretrained tokenizer takes about a hundred
#: bytes for each character of a batch.
_BATCH_ROWS = 1 << 11
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
    cut_texts   texts whose end was cut off
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
    _text_ids: array[int] = field(default_factory=lambda: array("q"))
    _lengths: array[int] = field(default_factory=lambda: array("i"))
    _firsts: array[int] = field(default_factory=lambda: array("i"))
    _counts: array[int] = field(default_factory=lambda: array("i"))

    def write(self, number: int, rows: Iterable[Row], progress: Progress) -> None:
        """Write all texts of one source. Raises DataError where the source has grown since the survey."""
        labels = frozenset(self.survey.labels)
        for row in rows:
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
        """Return the fragments written so far."""
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
            raise DataError("the data files changed while they were read; start again once they are complete")
        lines, texts, _ = zip(*self._rows, strict=True) if self._rows else ((), (), ())
        pieces = self.encoder.encode(texts)
        before, after = (array("I", each).tobytes() for each in (self.encoder.before, self.encoder.after))
        room = NUMBER.itemsize * (self.data.max_tokens - len(self.encoder.before) - len(self.encoder.after))
        samples = self._cut(first, texts, pieces, room)
        self._insert(first, stop, source, lines, texts)
        self.stream.write(b"".join([part for numbers in samples for part in (before, numbers, after)]))
        around = len(before) + len(after)
        self._lengths.extend([(around + len(numbers)) // NUMBER.itemsize for numbers in samples])
        self._written, self._characters = stop, 0
        self._rows.clear()

    def _cut(self, first: int, texts: Sequence[str], pieces: Pieces, room: int) -> Sequence[bytes]:
        """The tokens of every sample of some texts.

        first  number of the first text
        room   bytes of tokens that fit between the special ones
        """
        samples: list[bytes] = []
        begin = 0
        long = [place for place, numbers in enumerate(pieces.numbers) if len(numbers) > room]
        spans = iter(pieces.spans(long) if self.data.fold != "none" else ())
        for place in (*long, len(texts)):
            samples += pieces.numbers[begin:place]
            self._text_ids.extend(range(first + begin, first + place))
            self._firsts.extend(repeat(0, place - begin))
            self._counts.extend(map(len, texts[begin:place]))
            if place < len(texts):
                samples += self._cut_long(first + place, texts[place], pieces.numbers[place], spans, room)
            begin = place + 1
        return samples

    def _cut_long(
        self, text_id: int, text: str, numbers: bytes, spans: Iterator[tuple[Places, Places]], room: int
    ) -> Iterator[bytes]:
        """The samples of one text that is too long.

        spans  those of its tokens come next
        """
        size = NUMBER.itemsize
        if self.data.fold == "none":
            self._cut_texts += 1
            self._note(text_id, 0, len(text))
            yield numbers[:room]
            return
        starts, ends = next(spans)
        for a, b in pairwise(fold(text, ends, room // size, self.data.fold)):
            self._note(text_id, *_stripped(text, int(starts[a]), int(ends[b - 1])))
            yield numbers[a * size : b * size]

    def _note(self, text_id: int, start: int, stop: int) -> None:
        """Remember the text of a sample, and its part of it."""
        self._text_ids.append(text_id)
        self._firsts.append(start)
        self._counts.append(stop - start)

    def _insert(self, first: int, stop: int, source: int, lines: Sequence[int], texts: Sequence[str]) -> None:
        survey = self.survey
        splits: Iterator[str | None] = repeat(None)
        labels = survey.text_label[first:stop].tolist()
        if survey.text_split is not None:
            splits = map(survey.splits.__getitem__, survey.text_split[first:stop].tolist())
        rows = zip(range(first, stop), repeat(source), lines, texts, labels, splits, strict=False)
        self.database.executemany(_INSERT, rows)


def _stripped(text: str, start: int, stop: int) -> tuple[int, int]:
    """Start and end of a stretch of text without the blanks around it, which some tokens begin with."""
    own = text[start:stop].lstrip()
    return stop - len(own), stop - len(own) + len(own.rstrip())


def write_texts(
    folder: Path,
    database: sqlite3.Connection,
    data: TextTable,
    sources: Iterable[Source],
    rows: Rows,
    survey: Survey,
    encoder: Encoder,
    progress: Progress,
) -> Fragments:
    """Write the texts of all sources, and their tokens under provisional numbers. Raises DataError."""
    with open(folder / PROVISIONAL, "wb") as stream:
        writer = TextWriter(data=data, survey=survey, encoder=encoder, database=database, stream=stream)
        for number, source in enumerate(sources):
            writer.write(number, rows.of(source), progress)
            source.check_unchanged()
    return writer.fragments()
