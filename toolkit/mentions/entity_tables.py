"""Entities of a prepared set: their numbers, texts, types and relations."""

from __future__ import annotations

import itertools
import sqlite3
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from toolkit.config.kinds import EntityMentions
from toolkit.data.layout import token_dtype
from toolkit.data.sealed import write_array
from toolkit.data.sources import Progress
from toolkit.entities.database import EntityDatabase
from toolkit.mentions import layout
from toolkit.mentions.entity_text import Part, encode_entities, entity_parts, type_names
from toolkit.mentions.tokenizer import MarkedTokenizer

#: Entities tokenized at once.
_BLOCK = 2048
_INSERT = "INSERT INTO entities VALUES (?, ?, ?, ?, ?)"


@dataclass(slots=True)
class Names:
    """Numbers of names, from 1 in the order in which they come; 0 is an unknown one.

    Closed, it takes no new names: a model has no vectors for them.
    """

    numbers: dict[str, int] = field(default_factory=dict)
    closed: bool = False

    def __getitem__(self, name: str) -> int:
        if self.closed:
            return self.numbers.get(name, 0)
        return self.numbers.setdefault(name, len(self.numbers) + 1)


@dataclass(slots=True)
class _Lists:
    """Lists of numbers one after the other, and where each begins."""

    values: array[int] = field(default_factory=lambda: array("i"))
    offsets: array[int] = field(default_factory=lambda: array("q", [0]))

    def add(self, values: Sequence[int]) -> None:
        self.values.extend(values)
        self.offsets.append(len(self.values))

    def write(self, folder: Path, values: str, offsets: str) -> None:
        write_array(folder / values, np.frombuffer(self.values, dtype=np.int32).astype(layout.ID_DTYPE))
        write_array(folder / offsets, np.frombuffer(self.offsets, dtype=np.int64).astype(layout.OFFSET_DTYPE))


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityTables:
    """The entities of a database under numbers from 1, by their ids; writes what is known of them."""

    database: EntityDatabase
    data: EntityMentions
    numbers: Mapping[str, int]
    types: Names
    relations: Names

    @classmethod
    def of(
        cls, database: EntityDatabase, data: EntityMentions, types: Names, relations: Names
    ) -> EntityTables:
        numbers = {qid: number for number, qid in enumerate(database.entity_ids, start=1)}
        return cls(database=database, data=data, numbers=numbers, types=types, relations=relations)

    def write(
        self, folder: Path, connection: sqlite3.Connection, tokenizer: MarkedTokenizer, progress: Progress
    ) -> None:
        """Write rows and arrays; memory: the numbers, not the texts."""
        lengths, titles = array("q", [0]), array("H")
        qids = iter(["", *self.numbers])
        done, total = 0, len(self.numbers) + 1
        with open(folder / layout.ENTITY_TOKENS, "wb") as stream:
            while block := list(itertools.islice(qids, _BLOCK)):
                parts = [self._parts(qid) for qid in block]
                rows: list[tuple[int, str, str, str, int]] = []
                encoded = encode_entities(parts, tokenizer, self.data.max_entity_tokens)
                for qid, of, entity in zip(block, parts, encoded, strict=True):
                    stream.write(entity.tokens.astype(token_dtype(tokenizer.size)).data)
                    lengths.append(len(entity.tokens))
                    titles.append(entity.title)
                    rows.append(
                        (done + len(rows), *self._row(qid), " ".join(map(str, of)), len(entity.tokens))
                    )
                connection.executemany(_INSERT, rows)
                done += len(block)
                progress("describe entities", done, total)
        offsets = np.cumsum(np.frombuffer(lengths, dtype=np.int64))
        write_array(folder / layout.ENTITY_OFFSETS, offsets.astype(layout.OFFSET_DTYPE))
        write_array(folder / layout.TITLE_LENGTHS, np.frombuffer(titles, dtype=np.uint16).astype("<u2"))
        self._write_links(folder)

    def _parts(self, qid: str) -> list[Part]:
        return entity_parts(self.database, qid, self.data) if qid else []

    def _row(self, qid: str) -> tuple[str, str]:
        return (qid, self.database.title(qid)) if qid else ("NC", "none of the candidates")

    def _write_links(self, folder: Path) -> None:
        types, relations, objects = _Lists(), _Lists(), _Lists()
        types.add(())
        relations.add(())
        objects.add(())
        for qid in self.numbers:
            links = self.database.relations(qid)
            types.add([self.types[name] for name in type_names(self.database, qid, self.data)])
            relations.add([self.relations[name] for name, _ in links])
            objects.add([self.numbers.get(target, layout.NOBODY) for _, target in links])
        types.write(folder, layout.TYPES, layout.TYPE_OFFSETS)
        objects.write(folder, layout.OBJECTS, layout.RELATION_OFFSETS)
        relations.write(folder, layout.RELATIONS, layout.RELATION_OFFSETS)

    def qids(self) -> Iterator[str]:
        """Ids of the entities, in the order of their numbers from 1."""
        return iter(self.numbers)
