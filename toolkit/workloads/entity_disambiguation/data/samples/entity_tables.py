"""Entities of a prepared set: their numbers, texts, types and relations."""

from __future__ import annotations

import itertools
import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from toolkit.data.prepared.arrays import write_array
from toolkit.data.prepared.columns import Column, token_dtype
from toolkit.data.ragged import Array, offsets_of
from toolkit.workload import Progress
from toolkit.workloads.entity_disambiguation.config import EntityMentions
from toolkit.workloads.entity_disambiguation.data.encoding.entity_text import (
    Part,
    encode_entities,
    entity_parts,
    type_names,
)
from toolkit.workloads.entity_disambiguation.data.encoding.tokenizer import MarkedTokenizer
from toolkit.workloads.entity_disambiguation.data.entities.database import EntityDatabase
from toolkit.workloads.entity_disambiguation.data.samples import layout

#: Entities tokenized at once.
_BLOCK = 2048
#: In place of an entity's id if none of the candidates is meant.
NONE = "NC"
_INSERT = "INSERT INTO entities VALUES (?, ?, ?, ?, ?)"


@dataclass(slots=True)
class Names:
    """Numbers of names, from 1 in the order in which they come; 0 is an unknown one.

    Closed, it takes no new names: a model has no vectors for them.
    """

    numbers: dict[str, int] = field(default_factory=dict)
    closed: bool = False

    @classmethod
    def known(cls, names: Iterable[str]) -> Names:
        """Closed numbers of these names."""
        return cls({name: number for number, name in enumerate(names, start=1)}, closed=True)

    def __getitem__(self, name: str) -> int:
        if self.closed:
            return self.numbers.get(name, 0)
        return self.numbers.setdefault(name, len(self.numbers) + 1)


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
        lengths, titles = array("q"), array("H")
        qids = iter(["", *self.numbers])
        done, total = 0, len(self.numbers) + 1
        with open(folder / layout.ENTITY_TOKENS.file, "wb") as stream:
            while block := list(itertools.islice(qids, _BLOCK)):
                parts = [self.parts(qid) for qid in block]
                rows: list[tuple[int, str, str, str, int]] = []
                encoded = encode_entities(parts, tokenizer, self.data.max_entity_tokens)
                for qid, of, entity in zip(block, parts, encoded, strict=True):
                    stream.write(entity.tokens.astype(token_dtype(tokenizer.size)).data)
                    lengths.append(len(entity.tokens))
                    titles.append(entity.title)
                    title = self.database.title(qid) if qid else "none of the candidates"
                    text, tokens = " ".join(map(str, of)), len(entity.tokens)
                    rows.append((done + len(rows), qid or NONE, title, text, tokens))
                connection.executemany(_INSERT, rows)
                done += len(block)
                progress("describe entities", done, total)
        write_array(folder, layout.ENTITY_OFFSETS, offsets_of(np.asarray(lengths)))
        write_array(folder, layout.TITLE_LENGTHS, np.asarray(titles))
        for column, values in self.links():
            write_array(folder, column, values)

    def parts(self, qid: str) -> list[Part]:
        """The parts of an entity's text; of none of the candidates, "", there are none."""
        return entity_parts(self.database, qid, self.data) if qid else []

    def links(self) -> Iterator[tuple[Column, Array]]:
        """Types and relations of the entities, as the arrays of the columns that hold them."""
        types, relations, objects = array("i"), array("i"), array("i")
        # Number 0, none of the candidates, has no links.
        type_counts, link_counts = array("q", [0]), array("q", [0])
        for qid in self.numbers:
            names = type_names(self.database, qid, self.data)
            links = self.database.relations(qid)
            types.extend(self.types[name] for name in names)
            relations.extend(self.relations[name] for name, _ in links)
            objects.extend(self.numbers.get(target, layout.NO_ENTITY) for _, target in links)
            type_counts.append(len(names))
            link_counts.append(len(links))
        yield layout.TYPES, np.asarray(types)
        yield layout.TYPE_OFFSETS, offsets_of(np.asarray(type_counts))
        yield layout.OBJECTS, np.asarray(objects)
        yield layout.RELATIONS, np.asarray(relations)
        yield layout.RELATION_OFFSETS, offsets_of(np.asarray(link_counts))
