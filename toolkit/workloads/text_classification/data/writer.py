"""The second read of the sources: write their texts to the database and their tokens to a file.

The tokens have provisional numbers, because ids are assigned only after all tokens are counted.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

import numpy as np
import numpy.typing as npt

from toolkit.errors import DataError
from toolkit.nlp.tokens import NUMBER
from toolkit.workload import Progress
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data.encoders import Encoder
from toolkit.workloads.text_classification.data.folding import cut_into_samples
from toolkit.workloads.text_classification.data.sources.first_pass import Survey
from toolkit.workloads.text_classification.data.sources.formats.table import Row
from toolkit.workloads.text_classification.data.sources.labels import is_empty
from toolkit.workloads.text_classification.data.sources.source_files import Source

PROVISIONAL = "tokens.provisional"

#: A batch is encoded when it has this many rows or characters. A pretrained tokenizer needs about a hundred
#: bytes of memory for each character of a batch.
_BATCH_ROWS = 1 << 11
_BATCH_CHARACTERS = 1 << 19
_INSERT = "INSERT INTO texts (id, source, line, text, label, split) VALUES (?, ?, ?, ?, ?, ?)"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fragments:
    """The samples, in the order of their texts.

    text_ids    [n] int64, ascending
    lengths     [n] int32, tokens, special ones included
    firsts      [n] int32, where the sample begins in its text (code points)
    characters  [n] int32, its length (code points)
    cut_texts   number of texts that were cut at their end
    """

    text_ids: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int32]
    firsts: npt.NDArray[np.int32]
    characters: npt.NDArray[np.int32]
    cut_texts: int

    def __len__(self) -> int:
        return len(self.lengths)


def write_texts(
    folder: Path,
    database: sqlite3.Connection,
    data: TextTable,
    sources: Iterable[Source],
    survey: Survey,
    encoder: Encoder,
    progress: Progress,
) -> Fragments:
    """Write the texts of all sources, and their tokens under provisional numbers.

    Memory: a batch of texts, and 20 bytes per sample. Raises DataError if a source has changed since the
    survey.
    """
    text_ids, lengths, firsts, characters = array("q"), array("i"), array("i"), array("i")
    before, after = (array("I", each).tobytes() for each in (encoder.before, encoder.after))
    specials = len(encoder.before) + len(encoder.after)
    room = data.max_tokens - specials
    written = cut_texts = 0
    with open(folder / PROVISIONAL, "wb") as stream:
        for number, source in enumerate(sources):
            for batch in _batches(source.rows(data), survey.labels):
                if written + len(batch) > len(survey):
                    raise DataError(
                        "the data files changed while they were read; start again when they are complete"
                    )
                lines, texts, _ = zip(*batch, strict=True)
                pieces = encoder.encode(texts)
                samples = list(cut_into_samples(texts, pieces, room, data.fold))
                stream.write(b"".join([part for each in samples for part in (before, each.tokens, after)]))
                text_ids.extend([written + each.place for each in samples])
                lengths.extend([specials + len(each.tokens) // NUMBER.itemsize for each in samples])
                firsts.extend([each.start for each in samples])
                characters.extend([each.stop - each.start for each in samples])
                if data.fold == "none":
                    cut_texts += sum(len(each) > room * NUMBER.itemsize for each in pieces.numbers)
                _insert_texts(database, survey, written, number, lines, texts)
                written += len(batch)
                progress("tokenize", written, len(survey))
            source.check_unchanged()
    return Fragments(
        text_ids=np.asarray(text_ids),
        lengths=np.asarray(lengths),
        firsts=np.asarray(firsts),
        characters=np.asarray(characters),
        cut_texts=cut_texts,
    )


def _batches(rows: Iterable[Row], labels: Iterable[str]) -> Iterator[list[Row]]:
    """Yield batches of the rows that have a text and one of these labels."""
    known = frozenset(labels)
    batch: list[Row] = []
    characters = 0
    for row in rows:
        if row.label not in known or is_empty(row.text):
            continue
        batch.append(row)
        characters += len(row.text)
        if len(batch) == _BATCH_ROWS or characters >= _BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _insert_texts(
    database: sqlite3.Connection,
    survey: Survey,
    first: int,
    source: int,
    lines: Sequence[int],
    texts: Sequence[str],
) -> None:
    """Insert the texts of a batch; `first` is the number of the first text."""
    part = slice(first, first + len(texts))
    splits: Iterator[str | None] = repeat(None)
    if survey.text_split is not None:
        splits = map(survey.splits.__getitem__, survey.text_split[part].tolist())
    labels = survey.text_label[part].tolist()
    rows = zip(range(part.start, part.stop), repeat(source), lines, texts, labels, splits, strict=False)
    database.executemany(_INSERT, rows)
