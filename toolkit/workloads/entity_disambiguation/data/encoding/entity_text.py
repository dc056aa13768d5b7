"""The text of an entity: title, types, relations, description."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from toolkit.workloads.entity_disambiguation.config import EntityMentions
from toolkit.workloads.entity_disambiguation.data.encoding.tokenizer import (
    ENT_DESC,
    ENT_KG,
    ENT_TYPE,
    MarkedTokenizer,
)
from toolkit.workloads.entity_disambiguation.data.entities.database import EntityDatabase

_PARENTHESES = re.compile(r"\s*\([^()]*\)")


class Part(NamedTuple):
    """A part of an entity's text, and the marker before it; the title has none."""

    marker: str
    text: str

    def __str__(self) -> str:
        return f"{self.marker} {self.text}".strip()


class EntityTokens(NamedTuple):
    """The tokens of an entity with special tokens around them, and the number of tokens of the title."""

    tokens: npt.NDArray[np.uint32]
    title: int


def bare_title(title: str) -> str:
    """Return a title without its parentheses, or the title if nothing else is in it."""
    return _PARENTHESES.sub("", title).strip() or title


def entity_parts(database: EntityDatabase, qid: str, data: EntityMentions) -> list[Part]:
    """The parts of an entity's text that are enabled in a data section.

    The first type and the first relation are always included, others up to the limits of words.
    """
    parts = [Part("", bare_title(database.title(qid)))] if data.title else []
    if data.types:
        parts += [
            Part(ENT_TYPE, name) for name in _within(type_names(database, qid, data), data.max_type_words)
        ]
    if data.relations:
        lines = (_relation(database, name, target) for name, target in database.relations(qid))
        parts += [Part(ENT_KG, line) for line in _within(lines, data.max_relation_words)]
    if data.description and (description := database.description(qid).strip()):
        parts.append(Part(ENT_DESC, description))
    return parts


def type_names(database: EntityDatabase, qid: str, data: EntityMentions) -> list[str]:
    """Names of the entity's types in the systems of the data section, without duplicates."""
    systems = database.types(qid)
    wanted = systems if data.type_systems is None else [each for each in data.type_systems if each in systems]
    return list(dict.fromkeys(name for system in wanted for name in systems[system]))


def encode_entities(
    parts: Sequence[Sequence[Part]], tokenizer: MarkedTokenizer, max_tokens: int
) -> Iterator[EntityTokens]:
    """Yield the tokens of entities. A text that is too long is cut at its end."""
    pieces = iter(tokenizer.encode([part.text for entity in parts for part in entity]))
    room = max_tokens - tokenizer.specials
    for entity in parts:
        inner: list[int] = []
        title = 0
        for part in entity:
            numbers = next(pieces)
            if part.marker:
                inner.append(tokenizer.markers[part.marker])
            else:
                title = min(len(numbers), room)
            inner.extend(numbers.tolist())
        tokens = [*tokenizer.before, *inner[:room], *tokenizer.after]
        yield EntityTokens(np.array(tokens or [tokenizer.unk_id], dtype=np.uint32), title)


def _relation(database: EntityDatabase, name: str, target: str) -> str:
    return f"{name} {bare_title(database.title(target))}" if target in database else name


def _within(items: Iterable[str], words: int) -> Iterator[str]:
    """Yield the first item, and further items while all together have at most this many words."""
    used = 0
    for place, item in enumerate(items):
        used += len(item.split())
        if place and used > words:
            return
        yield item
