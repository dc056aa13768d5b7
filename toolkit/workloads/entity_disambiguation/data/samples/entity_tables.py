"""The tables of entities (texts, types, relations) and of the candidates of aliases."""

from __future__ import annotations

import itertools
import math
import sqlite3
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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

#: Number of entities that are tokenized together.
_BLOCK = 2048
#: The id of "none of the candidates".
NONE = "NC"
_INSERT = "INSERT INTO entities VALUES (?, ?, ?, ?, ?)"


@dataclass(slots=True)
class Names:
    """Numbers names from 1, by first use. 0 is the number of an unknown name.

    If closed, new names are unknown, because a model has no vectors for them.
    """

    numbers: dict[str, int] = field(default_factory=dict)
    closed: bool = False

    @classmethod
    def known(cls, names: Iterable[str]) -> Names:
        """Number these names, and close."""
        return cls({name: number for number, name in enumerate(names, start=1)}, closed=True)

    def __getitem__(self, name: str) -> int:
        if self.closed:
            return self.numbers.get(name, 0)
        return self.numbers.setdefault(name, len(self.numbers) + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityTables:
    """The entities of a database; `numbers` gives each id a number from 1."""

    database: EntityDatabase
    data: EntityMentions
    numbers: Mapping[str, int]
    types: Names
    relations: Names

    def write(
        self, folder: Path, connection: sqlite3.Connection, tokenizer: MarkedTokenizer, progress: Progress
    ) -> None:
        """Write rows and arrays. Texts are not all in memory."""
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

    def candidates(self, alias: str) -> Sequence[tuple[str, float]]:
        """Return the first data.max_candidates candidates of an alias, the most popular first."""
        return self.database.candidates(alias)[: self.data.max_candidates]

    def parts(self, qid: str) -> list[Part]:
        """The parts of an entity's text; "none of the candidates" (the id "") has none."""
        return entity_parts(self.database, qid, self.data) if qid else []

    def links(self) -> Iterator[tuple[Column, Array]]:
        """Yield the columns of types and relations of all entities, with their values."""
        types, relations, objects = array("i"), array("i"), array("i")
        # Number 0, "none of the candidates", has no types and relations.
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

    def of_aliases(self, aliases: Collection[str]) -> tuple[Array, Array]:
        """Return the candidates of aliases and the log of each candidate's share, both [aliases, width].

        Rows of candidates are padded with -1. With data.no_candidate, "none of them" is the first candidate
        of every alias. A candidate's share is computed from its score plus one, so a candidate with score
        zero has a share, too.
        """
        first = int(self.data.no_candidate)
        width = first + max((len(self.candidates(alias)) for alias in aliases), default=1)
        entities = np.full((len(aliases), width), layout.NO_ENTITY)
        priors = np.zeros(entities.shape)
        entities[:, :first] = layout.NONE_OF_THEM
        for number, alias in enumerate(aliases):
            found = self.candidates(alias)
            total = first + sum(max(score, 0.0) + 1.0 for _, score in found)
            priors[number, :first] = -math.log(total)
            for place, (qid, score) in enumerate(found, start=first):
                entities[number, place] = self.numbers[qid]
                priors[number, place] = math.log((max(score, 0.0) + 1.0) / total)
        return entities, priors
