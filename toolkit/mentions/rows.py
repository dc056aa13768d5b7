"""Mentions of sentences as rows and arrays: which are samples, and what each should be."""

from __future__ import annotations

import json
import math
import sqlite3
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from toolkit.config.kinds import EntityMentions
from toolkit.data.layout import token_dtype
from toolkit.data.sealed import write_array
from toolkit.data.sources import Progress
from toolkit.entities.checks import check_candidates
from toolkit.entities.counts import GoldCounts
from toolkit.entities.database import EntityDatabase
from toolkit.entities.division import TRAIN
from toolkit.entities.sentences import UNKNOWN, Mention, Sentence
from toolkit.entities.slices import MEMBER_ABOVE
from toolkit.errors import DataError
from toolkit.mentions import layout
from toolkit.mentions.context import contexts
from toolkit.mentions.entity_tables import EntityTables
from toolkit.mentions.entity_text import type_names
from toolkit.mentions.sources import SPLITS, SentenceFile
from toolkit.mentions.tokenizer import MarkedTokenizer
from toolkit.metrics.disambiguation import NOT_SCORED, OUTSIDE

#: Mentions tokenized at once.
_BLOCK = 2048
_SENTENCE = "INSERT INTO sentences VALUES (?, ?, ?, ?, ?, ?, ?)"
_MENTION = f"INSERT INTO mentions VALUES ({', '.join('?' * 16)}, 0)"
_CANDIDATE = "INSERT INTO candidates VALUES (?, ?, ?, ?)"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A mention that will be a sample."""

    sentence: int
    split: str
    line: int
    position: int
    text: str
    mention: Mention
    alias: int
    label: int


@dataclass(slots=True, kw_only=True)
class MentionRows:
    """Reads files of sentences and writes what they hold; memory: a few numbers for each mention.

    left_out  mentions of training that nothing can be learnt from, by reason
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
    _golds: dict[str, int] = field(default_factory=dict)
    _gold: array[int] = field(default_factory=lambda: array("i"))
    _split: array[int] = field(default_factory=lambda: array("b"))
    _alias: array[int] = field(default_factory=lambda: array("i"))
    _label: array[int] = field(default_factory=lambda: array("h"))
    _sentence: array[int] = field(default_factory=lambda: array("q"))
    _length: array[int] = field(default_factory=lambda: array("i"))
    _spans: array[int] = field(default_factory=lambda: array("h"))
    _wide: array[int] = field(default_factory=lambda: array("h"))
    _popular: array[int] = field(default_factory=lambda: array("b"))

    def __len__(self) -> int:
        return len(self._gold)

    def read(
        self,
        folder: Path,
        connection: sqlite3.Connection,
        files: Sequence[SentenceFile],
        progress: Progress,
        *,
        counts: bool,
    ) -> None:
        """Read all files and write rows and tokens. Raises DataError that names file and line.

        counts  whether the golds of training are counted, too
        """
        with open(folder / layout.TOKENS, "wb") as stream:
            for number, file in enumerate(files):
                block: list[_Found] = []
                before = self.sentences
                for split, sentence in file.sentences(self.data):
                    if counts and split == TRAIN:
                        self.counts.add(sentence, count_weak=self.data.count_weak)
                    self._write_sentence(connection, number, split, sentence)
                    block += self._samples(file.path, split, sentence)
                    self.sentences += 1
                    if len(block) >= _BLOCK:
                        self._write(connection, stream, block)
                        block = []
                        progress("read sentences", self.sentences, None)
                self._write(connection, stream, block)
                row = (number, str(file.path), file.sha256, file.split, self.sentences - before)
                connection.execute("INSERT INTO sources VALUES (?, ?, ?, ?, ?)", row)

    def _write_sentence(
        self, connection: sqlite3.Connection, file: int, split: str, sentence: Sentence
    ) -> None:
        record = json.dumps(sentence.record, ensure_ascii=False)
        row = (self.sentences, file, sentence.line, sentence.id, split, sentence.text, record)
        connection.execute(_SENTENCE, row)

    def _samples(self, path: Path, split: str, sentence: Sentence) -> Iterator[_Found]:
        check_candidates(sentence, self.database, path)
        for position, mention in enumerate(sentence.mentions):
            label = self._label_of(mention)
            reason = self._useless(mention, label) if split == TRAIN else ""
            if reason == _OUTSIDE:
                raise DataError(
                    f"{path}:{sentence.line}: qids[{position}] is {mention.gold}, which is not among the "
                    f"candidates of {mention.alias!r} ({self._few(mention.alias)}), so training cannot learn "
                    "it; add it to the database, raise data.max_candidates, or set data.no_candidate to true"
                )
            if reason:
                self.left_out[reason] = self.left_out.get(reason, 0) + 1
                continue
            if split != TRAIN and not mention.is_gold:
                label = NOT_SCORED
            yield _Found(
                sentence=self.sentences, split=split, line=sentence.line, position=position,
                text=sentence.text, mention=mention, label=label,
                alias=self._aliases.setdefault(mention.alias, len(self._aliases)),
            )  # fmt: skip

    def _useless(self, mention: Mention, label: int) -> str:
        """Why training cannot use a mention; empty where it can."""
        if label == NOT_SCORED:
            return "unknown gold"
        if not mention.is_gold and not self.data.use_weak_labels:
            return "weak label"
        return _OUTSIDE if label == OUTSIDE else ""

    def candidates(self, alias: str) -> Sequence[tuple[str, float]]:
        """Those that are kept, the most popular first."""
        return self.database.candidates(alias)[: self.data.max_candidates]

    def _few(self, alias: str) -> str:
        found = [qid for qid, _ in self.candidates(alias)]
        return ", ".join(found[:5]) + (f" and {len(found) - 5} more" if len(found) > 5 else "")

    def _label_of(self, mention: Mention) -> int:
        if mention.gold == UNKNOWN:
            return NOT_SCORED
        for place, (qid, _) in enumerate(self.candidates(mention.alias)):
            if qid == mention.gold:
                return place + self.data.no_candidate
        return 0 if self.data.no_candidate else OUTSIDE

    def _write(self, connection: sqlite3.Connection, stream: BinaryIO, block: Sequence[_Found]) -> None:
        spans = [found.mention.characters for found in block]
        samples = contexts(
            [found.text for found in block], spans, self.tokenizer,
            window=self.data.window, max_tokens=self.data.max_tokens,
        )  # fmt: skip
        dtype = token_dtype(self.tokenizer.size)
        rows = []
        for found, sample in zip(block, samples, strict=True):
            stream.write(sample.tokens.astype(dtype).data)
            self._length.append(len(sample.tokens))
            self._spans.extend((sample.first, sample.last))
            rows.append(self._row(found, len(sample.tokens)))
        connection.executemany(_MENTION, rows)

    def _row(self, found: _Found, tokens: int) -> tuple[Any, ...]:
        """Take a mention into the arrays; return its row."""
        number, mention = len(self), found.mention
        width = len(self.candidates(mention.alias))
        popular = found.label == int(self.data.no_candidate)
        for name, probability in mention.slices.items():
            if probability > MEMBER_ABOVE:
                self.labelled.setdefault(name, array("q")).append(number)
        self._gold.append(self._golds.setdefault(mention.gold, len(self._golds)))
        self._split.append(SPLITS.index(found.split))
        self._alias.append(found.alias)
        self._label.append(found.label)
        self._sentence.append(found.sentence)
        self._wide.append(width)
        self._popular.append(popular)
        known = mention.gold in self.database
        title = self.database.title(mention.gold) if known else ""
        types = "|".join(type_names(self.database, mention.gold, self.data)) if known else ""
        return (
            number, found.sentence, found.split, found.line, found.position, mention.alias,
            *mention.characters, mention.gold, title, int(mention.is_gold), found.label, width, int(popular),
            types, tokens,
        )  # fmt: skip

    def write_candidates(self, folder: Path, connection: sqlite3.Connection) -> int:
        """Write the table of candidates of every alias that was met; return its width.

        Log of a share: of the scores, each with one added, so that a score of zero is no impossibility.
        """
        first = int(self.data.no_candidate)
        width = first + max((len(self.candidates(alias)) for alias in self._aliases), default=1)
        table = np.full((len(self._aliases), width), layout.NOBODY, dtype=layout.ID_DTYPE)
        priors = np.zeros(table.shape, dtype=layout.FLOAT_DTYPE)
        table[:, :first] = layout.NONE_OF_THEM
        for number, alias in enumerate(self._aliases):
            found = self.candidates(alias)
            total = first + sum(max(score, 0.0) + 1.0 for _, score in found)
            priors[number, :first] = -math.log(total)
            for place, (qid, score) in enumerate(found, start=first):
                table[number, place] = self.entities.numbers[qid]
                priors[number, place] = math.log((max(score, 0.0) + 1.0) / total)
            rows = [
                (alias, place, self.entities.numbers[qid], score) for place, (qid, score) in enumerate(found)
            ]
            connection.executemany(_CANDIDATE, rows)
        write_array(folder / layout.CANDIDATES, table)
        write_array(folder / layout.PRIORS, priors)
        return width

    def write_arrays(self, folder: Path) -> None:
        """Write the flat arrays of samples."""
        offsets = np.zeros(len(self) + 1, dtype=layout.OFFSET_DTYPE)
        np.cumsum(np.frombuffer(self._length, dtype=np.int32), out=offsets[1:])
        write_array(folder / layout.OFFSETS, offsets)
        for name, values, dtype in (
            (layout.SPANS, self._spans, layout.PLACE_DTYPE),
            (layout.LABELS, self._label, layout.PLACE_DTYPE),
            (layout.ALIASES, self._alias, layout.ID_DTYPE),
            (layout.SENTENCES, self._sentence, layout.OFFSET_DTYPE),
        ):
            write_array(folder / name, np.asarray(values).astype(dtype))
        for number, split in enumerate(SPLITS):
            ids = np.flatnonzero(np.asarray(self._split) == number)
            write_array(folder / layout.split_file(split), ids.astype(layout.OFFSET_DTYPE))

    def count_golds(self) -> npt.NDArray[np.int64]:
        """How often training has seen the gold of each mention, [n]."""
        seen = np.array([self.counts.entities[gold] for gold in self._golds], dtype=np.int64)
        return seen[np.asarray(self._gold)] if len(self) else np.zeros(0, np.int64)

    def widths(self) -> npt.NDArray[np.int16]:
        """Candidates of each mention's alias, [n]."""
        return np.asarray(self._wide)

    def popular(self) -> npt.NDArray[np.bool_]:
        """Whether each mention's gold is its alias's first candidate, [n]."""
        return np.asarray(self._popular).astype(bool)

    def split_sizes(self) -> dict[str, int]:
        """Samples of each split that has some."""
        sizes = np.bincount(np.asarray(self._split, dtype=np.int64), minlength=len(SPLITS)).tolist()
        return {split: size for split, size in zip(SPLITS, sizes, strict=True) if size}

    def splits(self) -> npt.NDArray[np.int8]:
        """The split of each mention, as a place in SPLITS, [n]."""
        return np.asarray(self._split)

    def labels(self) -> npt.NDArray[np.int16]:
        return np.asarray(self._label)


_OUTSIDE = "gold outside the candidates"
