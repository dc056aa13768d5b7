"""Convert the mentions of sentences to rows and arrays, and select those that are samples."""

from __future__ import annotations

import json
import sqlite3
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from toolkit.data.prepared.arrays import write_array
from toolkit.data.prepared.columns import split_ids, token_dtype
from toolkit.data.ragged import Array, offsets_of
from toolkit.data.sources.split_files import SPLITS
from toolkit.errors import DataError
from toolkit.system.output.few import few
from toolkit.workload import Progress
from toolkit.workloads.entity_disambiguation.config import EntityMentions
from toolkit.workloads.entity_disambiguation.data.encoding.context import Context, contexts
from toolkit.workloads.entity_disambiguation.data.encoding.entity_text import type_names
from toolkit.workloads.entity_disambiguation.data.encoding.tokenizer import MarkedTokenizer
from toolkit.workloads.entity_disambiguation.data.entities.database import EntityDatabase
from toolkit.workloads.entity_disambiguation.data.entities.division import TRAIN
from toolkit.workloads.entity_disambiguation.data.entities.sentences import UNKNOWN, Mention, Sentence
from toolkit.workloads.entity_disambiguation.data.entities.slices import MEMBER_ABOVE, GoldCounts
from toolkit.workloads.entity_disambiguation.data.samples import layout
from toolkit.workloads.entity_disambiguation.data.samples.entity_tables import EntityTables
from toolkit.workloads.entity_disambiguation.data.samples.source_files import SentenceFile
from toolkit.workloads.entity_disambiguation.metrics.slice_score import NOT_SCORED, OUTSIDE

#: Number of mentions that are tokenized together.
_BLOCK = 2048
_SENTENCE = "INSERT INTO sentences VALUES (?, ?, ?, ?, ?, ?, ?)"
_MENTION = f"INSERT INTO mentions VALUES ({', '.join('?' * 16)}, 0)"
_CANDIDATE = "INSERT INTO candidates VALUES (?, ?, ?, ?)"
#: Values of each sample in memory while the files are read. Splits are numbered as in SPLITS.
#: `width` is the number of candidates of the alias. `popular`: the gold is the first candidate.
_SAMPLE = np.dtype(
    [
        ("split", "i1"), ("aliases", "<i4"), ("labels", "<i2"), ("sentences", "<i8"),
        ("length", "<i4"), ("spans", "<i2", 2), ("width", "<i2"), ("popular", "?"),
    ]
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A mention that will be a sample; `number` is the number of its sentence."""

    number: int
    split: str
    sentence: Sentence
    position: int
    alias: int
    label: int

    @property
    def mention(self) -> Mention:
        return self.sentence.mentions[self.position]


@dataclass(slots=True, kw_only=True)
class MentionRows:
    """Reads files of sentences and writes their mentions. Memory: a few numbers for each mention.

    left_out  number of mentions that cannot be used in training, by reason
    labelled  numbers of the members of each slice that is named in lines
    """

    data: EntityMentions
    database: EntityDatabase
    entities: EntityTables
    tokenizer: MarkedTokenizer
    counts: GoldCounts
    sentences: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    labelled: dict[str, array[int]] = field(default_factory=dict)
    _aliases: dict[str, int] = field(default_factory=dict)
    _numbers: bytearray = field(default_factory=bytearray)

    def __len__(self) -> int:
        return len(self._numbers) // _SAMPLE.itemsize

    def read(
        self,
        folder: Path,
        connection: sqlite3.Connection,
        files: Sequence[SentenceFile],
        progress: Progress,
        *,
        counts: bool,
    ) -> None:
        """Read all files, and write rows and tokens. Raises DataError with file and line.

        counts  whether the golds of training are counted
        """
        with open(folder / layout.TOKENS.file, "wb") as stream:
            for number, file in enumerate(files):
                block: list[_Found] = []
                before = self.sentences
                for split, sentence in file.sentences(self.data):
                    if counts and split == TRAIN:
                        self.counts.add(sentence, count_weak=self.data.count_weak)
                    record = json.dumps(sentence.record, ensure_ascii=False)
                    row = (self.sentences, number, sentence.line, sentence.id, split, sentence.text, record)
                    connection.execute(_SENTENCE, row)
                    block += self._samples(file.path, split, sentence)
                    self.sentences += 1
                    if len(block) >= _BLOCK:
                        self._write(connection, stream, block)
                        block = []
                        progress("read sentences", self.sentences, None)
                self._write(connection, stream, block)
                source = (number, str(file.path), file.sha256, file.split, self.sentences - before)
                connection.execute("INSERT INTO sources VALUES (?, ?, ?, ?, ?)", source)

    def _samples(self, path: Path, split: str, sentence: Sentence) -> Iterator[_Found]:
        self.database.check_aliases(sentence, path)
        for position, mention in enumerate(sentence.mentions):
            label = self._label_of(mention)
            if split != TRAIN:
                label = label if mention.is_gold else NOT_SCORED
            elif label == NOT_SCORED or not (mention.is_gold or self.data.use_weak_labels):
                reason = "unknown gold" if label == NOT_SCORED else "weak label"
                self.left_out[reason] = self.left_out.get(reason, 0) + 1
                continue
            elif label == OUTSIDE:
                found = few((qid for qid, _ in self.entities.candidates(mention.alias)), 5)
                raise DataError(
                    f"{path}:{sentence.line}: qids[{position}] is {mention.gold}, which is not among the "
                    f"candidates of {mention.alias!r} ({found}), so training cannot learn "
                    "it; add it to the database, raise data.max_candidates, or set data.no_candidate to true"
                )
            alias = self._aliases.setdefault(mention.alias, len(self._aliases))
            yield _Found(
                number=self.sentences, split=split, sentence=sentence, position=position, alias=alias,
                label=label,
            )  # fmt: skip

    def _label_of(self, mention: Mention) -> int:
        if mention.gold == UNKNOWN:
            return NOT_SCORED
        for place, (qid, _) in enumerate(self.entities.candidates(mention.alias)):
            if qid == mention.gold:
                return place + self.data.no_candidate
        return 0 if self.data.no_candidate else OUTSIDE

    def _write(self, connection: sqlite3.Connection, stream: BinaryIO, block: Sequence[_Found]) -> None:
        spans = [found.mention.characters for found in block]
        samples = contexts(
            [found.sentence.text for found in block], spans, self.tokenizer,
            window=self.data.window, max_tokens=self.data.max_tokens,
        )  # fmt: skip
        dtype = token_dtype(self.tokenizer.size)
        rows = []
        for found, sample in zip(block, samples, strict=True):
            stream.write(sample.tokens.astype(dtype).data)
            rows.append(self._row(found, sample))
        connection.executemany(_MENTION, rows)

    def _row(self, found: _Found, sample: Context) -> tuple[Any, ...]:
        """Keep the values of a sample; return its row."""
        number, mention, tokens = len(self), found.mention, len(sample.tokens)
        width = len(self.entities.candidates(mention.alias))
        popular = found.label == int(self.data.no_candidate)
        for name, probability in mention.slices.items():
            if probability > MEMBER_ABOVE:
                self.labelled.setdefault(name, array("q")).append(number)
        numbers = (
            SPLITS.index(found.split), found.alias, found.label, found.number, tokens,
            (sample.first, sample.last), width, popular,
        )  # fmt: skip
        self._numbers += np.array(numbers, _SAMPLE).tobytes()
        known = mention.gold in self.database
        title = self.database.title(mention.gold) if known else ""
        types = "|".join(type_names(self.database, mention.gold, self.data)) if known else ""
        return (
            number, found.number, found.split, found.sentence.line, found.position, mention.alias,
            *mention.characters, mention.gold, title, int(mention.is_gold), found.label, width, int(popular),
            types, tokens,
        )  # fmt: skip

    def write_candidates(self, folder: Path, connection: sqlite3.Connection) -> int:
        """Write the table of the candidates of every alias; return its width."""
        entities = self.entities
        table, priors = entities.of_aliases(self._aliases)
        for alias in self._aliases:
            found = enumerate(entities.candidates(alias), start=int(self.data.no_candidate))
            rows = [(alias, place, entities.numbers[qid], score) for place, (qid, score) in found]
            connection.executemany(_CANDIDATE, rows)
        write_array(folder, layout.CANDIDATES, table)
        write_array(folder, layout.PRIORS, priors)
        return int(table.shape[1])

    def write_arrays(self, folder: Path) -> None:
        """Write the flat arrays of the samples."""
        write_array(folder, layout.OFFSETS, offsets_of(self.column("length")))
        for column in (layout.SPANS, layout.LABELS, layout.ALIASES, layout.SENTENCES):
            write_array(folder, column, self.column(column.file.removesuffix(".bin")))
        for number, split in enumerate(SPLITS):
            write_array(folder, split_ids(split), np.flatnonzero(self.column("split") == number))

    def column(self, name: str) -> Array:
        """One value of each sample, [n]; `spans` [n, 2]."""
        return np.frombuffer(self._numbers, _SAMPLE)[name]

    def split_sizes(self) -> dict[str, int]:
        """The number of samples, by split; splits without samples are left out."""
        sizes = np.bincount(self.column("split"), minlength=len(SPLITS)).tolist()
        return {split: size for split, size in zip(SPLITS, sizes, strict=True) if size}
