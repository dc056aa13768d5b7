"""Prepared texts: their tokens in flat arrays, themselves in a database."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from stk_toy.texts.sections import TextsData
from toolkit.data.prepared.arrays import map_array, map_lists, write_array
from toolkit.data.prepared.columns import Column
from toolkit.data.prepared.database import commit, new_database, reading
from toolkit.data.prepared.folder import PreparedFolder
from toolkit.data.prepared.manifest import write_manifest
from toolkit.data.provenance import Origin
from toolkit.data.ragged import Lists, offsets_of
from toolkit.data.sources.source_files import TEST, SourceFile, set_place
from toolkit.errors import DataError
from toolkit.nlp.tokens import PAD_ID, Vocabulary
from toolkit.workload import Progress

_VOCABULARY = "vocabulary.json"
_SCHEMA = """
CREATE TABLE texts (split TEXT, sample INTEGER, file TEXT, line INTEGER, label TEXT, text TEXT);
"""
_ORIGINS = "SELECT sample, file, line, label, text FROM texts WHERE split = ?"


@dataclass(frozen=True, slots=True)
class Row:
    split: str
    file: Path
    line: int
    text: str
    label: str


@dataclass(frozen=True, slots=True)
class Samples:
    """The texts of a split: lists of tokens, and codes of labels [n]."""

    split: str
    tokens: Lists
    labels: np.ndarray
    database: Path

    @property
    def lengths(self) -> np.ndarray:
        return self.tokens.lengths(np.arange(len(self))).astype(np.int32)

    def __len__(self) -> int:
        return len(self.labels)

    def origins(self, indices: np.ndarray) -> dict[int, Origin]:
        with reading(self.database) as connection:
            rows = connection.execute(_ORIGINS, [self.split]).fetchall()
        names = ("sample", "file", "line", "label", "text")
        found = [Origin(**dict(zip(names, row, strict=True))) for row in rows]
        wanted = {int(index) for index in indices}
        return {origin.sample: origin for origin in found if origin.sample in wanted}

    def batch(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
        """Tokens [B, L], padded at their ends, labels [B], and how many tokens are real."""
        return self.tokens.gather(indices, PAD_ID), self.labels[indices], int(self.lengths[indices].sum())


class Texts(PreparedFolder[Samples]):
    """An opened set."""

    VERSION = 1
    FACTS = ("splits", "labels", "vocabulary_size", "skipped")

    @property
    def labels(self) -> list[str]:
        return list(self.meta["labels"])

    @property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary.load(self.path / _VOCABULARY)

    def _contents(self) -> str:
        return f"; {len(self.labels)} labels, {self.meta['vocabulary_size']:,} tokens"

    def _details(self) -> Iterator[str]:
        if skipped := self.meta["skipped"]:
            yield f"left out: {skipped:,} with another label"

    def _samples(self, split: str) -> Samples:
        tokens = map_lists(self.path, _column(split, "tokens"), _column(split, "offsets"))
        return Samples(split, tokens, map_array(self.path, _column(split, "labels")), self.database)


def prepare(data: TextsData, progress: Progress) -> Texts:
    """The set of a section."""
    sources = data.sources(progress)
    return _open_or_build(data, sources, data.description(sources), None)


def prepare_other(data: TextsData, known: Texts, progress: Progress) -> Texts:
    """`data.path` as the one split `test`, with the labels and tokens of a known set."""
    data = replace(data, labels=tuple(known.labels), train=None, validation=None, test=None)
    sources = [replace(each, split=TEST) for each in data.sources(progress)]
    vocabulary = known.vocabulary
    return _open_or_build(data, sources, data.description(sources, tokens=vocabulary.tokens), vocabulary)


def _open_or_build(
    data: TextsData, sources: list[SourceFile], description: dict, vocabulary: Vocabulary | None
) -> Texts:
    path, fingerprint = set_place(data.prepared_dir, sources, description)
    return Texts.open_or_build(
        path, fingerprint, lambda folder: _fill(folder, data, sources, fingerprint, vocabulary)
    )


def _fill(
    folder: Path, data: TextsData, sources: Sequence[SourceFile], fingerprint: str, known: Vocabulary | None
) -> None:
    every = [row for source in sources for row in _rows(data, source)]
    labels = data.labels or sorted({row.label for row in every if row.split == "train"})
    rows = [row for row in every if row.label in labels]
    if not rows:
        found = ", ".join(sorted({row.label for row in every})) or "none"
        problem = f"no row has one of the labels {', '.join(labels)}; found: {found}"
        raise DataError(f"{sources[0].path}: {problem}")
    cut = list if data.tokenizer == "letters" else str.split
    vocabulary = known or _vocabulary(data, [cut(row.text) for row in rows if row.split == "train"])
    vocabulary.save(folder / _VOCABULARY)
    splits = list(dict.fromkeys(row.split for row in rows))
    with new_database(folder, _SCHEMA) as connection:
        for split in splits:
            own = [row for row in rows if row.split == split]
            _write(folder, split, [vocabulary.encode(cut(row.text)[: data.max_tokens]) for row in own])
            write_array(folder, _column(split, "labels"), [labels.index(row.label) for row in own])
            values = [(split, at, str(row.file), row.line, row.label, row.text) for at, row in enumerate(own)]
            connection.executemany("INSERT INTO texts VALUES (?, ?, ?, ?, ?, ?)", values)
        commit(connection, "CREATE INDEX texts_split ON texts (split, sample)")
    counts = Counter(row.split for row in rows)
    facts = {"labels": labels, "vocabulary_size": len(vocabulary), "skipped": len(every) - len(rows)}
    told = [{"file": str(source.path), "sha256": source.sha256} for source in sources]
    meta = {"version": Texts.VERSION, "fingerprint": fingerprint, "splits": counts, "sources": told, **facts}
    for source in sources:
        source.check_unchanged()
    write_manifest(folder, meta)


def _rows(data: TextsData, source: SourceFile) -> Iterator[Row]:
    found = list(data.rows(source.path))
    known = [row for row in found if data.labels is None or row[2] in data.labels]
    splits = iter([source.split] * len(known) if source.split else _cut(data.splits, len(known)))
    for line, text, label in found:
        is_known = data.labels is None or label in data.labels
        yield Row(next(splits) if is_known else "", source.path, line, text, label)


def _cut(shares: Mapping[str, float], count: int) -> Iterator[str]:
    """The split of each of so many rows."""
    ends = count * np.cumsum(list(shares.values())) / sum(shares.values())
    return (list(shares)[place] for place in np.searchsorted(ends.round(), np.arange(count), "right"))


def _vocabulary(data: TextsData, texts: list[list[str]]) -> Vocabulary:
    counts = Counter(token for text in texts for token in text[: data.max_tokens])
    return Vocabulary.from_counts(counts, min_count=data.min_count)


def _write(folder: Path, split: str, tokens: list[np.ndarray]) -> None:
    lengths = np.array([len(each) for each in tokens])
    write_array(folder, _column(split, "tokens"), np.concatenate(tokens))
    write_array(folder, _column(split, "offsets"), offsets_of(lengths))


def _column(split: str, what: str) -> Column:
    return Column(f"{split}_{what}.bin", "<i8")
