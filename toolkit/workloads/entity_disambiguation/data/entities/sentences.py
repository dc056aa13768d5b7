"""Read sentences with mentions, as JSON lines. Faults name file and line."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.errors import DataError
from toolkit.workloads.entity_disambiguation.config import WHOLE_SLICE
from toolkit.workloads.entity_disambiguation.data.entities.jsonlines import Line, is_a, kind_of, read_lines
from toolkit.workloads.entity_disambiguation.data.entities.spans import Span, characters_of_words, check_span

#: The gold of a mention with an unknown entity.
UNKNOWN = "Q-1"
_IDS = range(-(1 << 63), 1 << 63)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A part of a sentence that means an entity.

    alias       the key of its candidates in the database
    characters  start and exclusive end in the text
    gold        id of the right entity, or UNKNOWN
    is_gold     False for a weak label, which is a guess of a rule
    slices      the probability of being in each slice of the line
    """

    alias: str
    characters: Span
    gold: str
    is_gold: bool
    slices: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One line of a file of sentences.

    id      sent_idx_unq, unique in the file
    source  parent_qid and parent_title: the text that the sentence is from, if it is given
    line    number of its line, from 1
    record  the line's JSON object, unchanged
    """

    id: int
    text: str
    mentions: tuple[Mention, ...]
    source: tuple[str, str] | None
    line: int
    record: Mapping[str, Any]


def read_sentences(path: Path) -> Iterator[Sentence]:
    """Yield the sentences of a JSON-lines file (UTF-8); blank lines are skipped.

    Raises DataError with file and line. Equal sent_idx_unq of two lines are found at the end of the file, so
    the caller must not keep results before the last sentence.
    """
    ids, lines = array("q"), array("q")
    for line in read_lines(path):
        sentence = parse_sentence(line)
        ids.append(sentence.id)
        lines.append(sentence.line)
        yield sentence
    check_unique(path, ids, lines)


def check_unique(path: Path, numbers: Sequence[int], lines: Sequence[int]) -> None:
    """Raise DataError for a sent_idx_unq of two lines, with file and line."""
    # Imported here, because reading only the first lines of a file needs no numpy.
    import numpy as np

    ids = np.array(numbers, np.int64)
    order = np.argsort(ids, kind="stable")
    (again,) = np.nonzero(ids[order][1:] == ids[order][:-1])
    if len(again):
        second = int(np.min(order[again + 1]))
        first = int(np.argmax(ids == ids[second]))
        raise DataError(
            f"{path}:{lines[second]}: sent_idx_unq {ids[second]} is also that of line {lines[first]}; "
            "give every line a different number"
        )


def parse_sentence(line: Line) -> Sentence:
    """Make a sentence from an object. Raises DataError with file and line."""
    text = line.value("sentence", str, "a text")
    aliases = line.items("aliases", str, "texts")
    places = _characters(line, text, len(aliases))
    golds = _parallel(line, "qids", len(aliases), str, "entity ids")
    kinds = _parallel(line, "gold", len(aliases), bool, "true (gold) or false (weak label)")
    slices = _slices(line, len(aliases))
    mentions = (
        Mention(alias=alias, characters=place, gold=gold, is_gold=kind, slices=of)
        for alias, place, gold, kind, of in zip(aliases, places, golds, kinds, slices, strict=True)
    )
    return Sentence(
        id=_id(line),
        text=text,
        mentions=tuple(mentions),
        source=_source(line),
        line=line.number,
        record=line.record,
    )


def _id(line: Line) -> int:
    number: int = line.value("sent_idx_unq", int, "a whole number, unique in the file")
    if number not in _IDS:
        line.refuse(f"sent_idx_unq {number} does not fit into 64 bits")
    return number


def _parallel(line: Line, key: str, count: int, kind: type, expected: str) -> list[Any]:
    values = line.items(key, kind, expected)
    if len(values) != count:
        line.refuse(f"{key} has {len(values)} entries, aliases has {count}; each alias needs one")
    return values


def _characters(line: Line, text: str, count: int) -> list[Span]:
    key = "char_spans" if "char_spans" in line.record else "spans"
    if key not in line.record:
        line.refuse("spans and char_spans are missing; one of them must give the places of the aliases")
    spans = [_pair(line, key, each) for each in _parallel(line, key, count, list, "pairs [start, end]")]
    try:
        if key == "spans":
            return [characters_of_words(text, span) for span in spans]
        for span in spans:
            check_span(span, len(text), "characters")
        return spans
    except ValueError as error:
        line.refuse(f"{key}: {error}")


def _pair(line: Line, key: str, span: Sequence[Any]) -> Span:
    if len(span) != 2 or not all(is_a(end, int) for end in span):
        line.refuse(f"{key} has {json.dumps(span)}, expected [start, end] in whole numbers")
    return span[0], span[1]


def _slices(line: Line, count: int) -> list[dict[str, float]]:
    found: list[dict[str, float]] = [{} for _ in range(count)]
    for name, probabilities in line.optional("slices", dict, "an object of slices", {}).items():
        if name == WHOLE_SLICE:
            line.refuse(f"slices: the name {name} is reserved for all scored mentions; choose another")
        _check_probabilities(line, name, probabilities, count)
        for place, of in enumerate(found):
            of[name] = float(probabilities[str(place)])
    return found


def _check_probabilities(line: Line, name: str, given: Any, count: int) -> None:
    if not isinstance(given, dict) or set(given) != {str(place) for place in range(count)}:
        keys = f"keys {', '.join(given) or 'none'}" if isinstance(given, dict) else kind_of(given)
        expected = f'"0" to "{count - 1}"' if count else "none"
        line.refuse(f"slices.{name} has {keys}, expected a probability for each alias: {expected}")
    for place, value in given.items():
        if not is_a(value, int, float) or not 0 <= value <= 1:
            line.refuse(f"slices.{name}.{place} is {json.dumps(value)}, expected a number from 0 to 1")


def _source(line: Line) -> tuple[str, str] | None:
    qid = line.optional("parent_qid", str, "a text", None)
    return None if qid is None else (qid, line.optional("parent_title", str, "a text", ""))
