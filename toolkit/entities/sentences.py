"""Sentences with mentions, as JSON lines: every broken rule is an error that names file and line."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from toolkit.entities.spans import Span, characters_of_words, check_span
from toolkit.errors import DataError

#: The gold of a mention whose entity is not known.
UNKNOWN = "Q-1"
#: The slice of all scored mentions is always there, so no file may define it.
RESERVED_SLICE = "final_loss"
_IDS = range(-(1 << 63), 1 << 63)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A place of a sentence that means an entity.

    alias       under which its candidates are looked up
    characters  start and exclusive end in the text
    gold        id of the entity that is meant; UNKNOWN where nobody knows
    is_gold     False: a weak label, guessed by a rule
    slices      probabilities with which the mention belongs to the slices of the line
    """

    alias: str
    characters: Span
    gold: str
    is_gold: bool
    slices: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One line of a file of sentences.

    id      sent_idx_unq: unique in the file
    source  parent_qid and parent_title: the text that the sentence is from, where it is named
    line    line of the file, counted from 1
    record  the line's JSON object as it stands
    """

    id: int
    text: str
    mentions: tuple[Mention, ...]
    source: tuple[str, str] | None
    line: int
    record: Mapping[str, Any]


def read_sentences(path: Path) -> Iterator[Sentence]:
    """Yield the sentences of a JSON-lines file (UTF-8); blank lines are passed over.

    Raises DataError that names file and line. Two lines with the same sent_idx_unq are found at the
    end of the file, so what was made of the sentences must not be kept before the last one has come.
    """
    ids, lines = array("q"), array("q")
    for number, record in _records(path):
        sentence = _Line(path, number, record).sentence()
        ids.append(sentence.id)
        lines.append(number)
        yield sentence
    _check_unique(path, np.frombuffer(ids, np.int64), np.frombuffer(lines, np.int64))


def _records(path: Path) -> Iterator[tuple[int, Any]]:
    try:
        with open(path, "rb") as stream:
            for number, line in enumerate(stream, start=1):
                if line.strip():
                    yield number, _parsed(path, number, line)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error


def _parsed(path: Path, number: int, line: bytes) -> Any:
    try:
        return json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}:{number}: not UTF-8 at byte {error.start}; save the file as UTF-8"
        ) from error
    except json.JSONDecodeError as error:
        raise DataError(
            f"{path}:{number}: not JSON at character {error.colno}: {error.msg}; expected one object a line"
        ) from error


def _check_unique(path: Path, ids: np.ndarray[Any, Any], lines: np.ndarray[Any, Any]) -> None:
    order = np.argsort(ids, kind="stable")
    (again,) = np.nonzero(ids[order][1:] == ids[order][:-1])
    if len(again):
        second = int(np.min(order[again + 1]))
        first = int(np.argmax(ids == ids[second]))
        raise DataError(
            f"{path}:{lines[second]}: sent_idx_unq {ids[second]} is that of line {lines[first]}; "
            "give every line a number of its own"
        )


@dataclass(frozen=True, slots=True)
class _Line:
    """A parsed line that is made into a sentence."""

    path: Path
    number: int
    record: Any

    def sentence(self) -> Sentence:
        if not isinstance(self.record, dict):
            self._refuse(f"found {_kind(self.record)}, expected an object with sentence, aliases, …")
        text = self._value("sentence", str, "a text")
        aliases = self._list("aliases", str, "texts")
        places = self._characters(text, len(aliases))
        golds = self._parallel("qids", len(aliases), str, "entity ids")
        kinds = self._parallel("gold", len(aliases), bool, "true or false for each alias")
        slices = self._slices(len(aliases))
        mentions = (
            Mention(alias=alias, characters=place, gold=gold, is_gold=kind, slices=of)
            for alias, place, gold, kind, of in zip(aliases, places, golds, kinds, slices, strict=True)
        )
        return Sentence(
            id=self._id(), text=text, mentions=tuple(mentions), source=self._source(), line=self.number,
            record=self.record,
        )  # fmt: skip

    def _refuse(self, problem: str) -> NoReturn:
        raise DataError(f"{self.path}:{self.number}: {problem}")

    def _value(self, key: str, kind: type, expected: str) -> Any:
        if key not in self.record:
            self._refuse(f"{key} is missing, expected {expected}")
        value = self.record[key]
        if not _is(value, kind):
            self._refuse(f"{key} is {_kind(value)}, expected {expected}")
        return value

    def _id(self) -> int:
        number: int = self._value("sent_idx_unq", int, "a whole number, unique in the file")
        if number not in _IDS:
            self._refuse(f"sent_idx_unq {number} does not fit into 64 bits")
        return number

    def _list(self, key: str, kind: type, expected: str) -> list[Any]:
        values: list[Any] = self._value(key, list, f"a list of {expected}")
        for place, value in enumerate(values):
            if not _is(value, kind):
                self._refuse(f"{key}[{place}] is {_kind(value)}, expected {expected}")
        return values

    def _parallel(self, key: str, count: int, kind: type, expected: str) -> list[Any]:
        values = self._list(key, kind, expected)
        if len(values) != count:
            self._refuse(f"{key} has {len(values)} entries, aliases has {count}; each alias needs one")
        return values

    def _characters(self, text: str, count: int) -> list[Span]:
        key = "char_spans" if "char_spans" in self.record else "spans"
        if key not in self.record:
            self._refuse("spans and char_spans are missing; one of them must say where the aliases stand")
        spans = [self._pair(key, each) for each in self._parallel(key, count, list, "pairs [start, end]")]
        try:
            if key == "spans":
                return [characters_of_words(text, span) for span in spans]
            for span in spans:
                check_span(span, len(text), "characters")
            return spans
        except ValueError as error:
            self._refuse(f"{key}: {error}")

    def _pair(self, key: str, span: Sequence[Any]) -> Span:
        if len(span) != 2 or not all(_is(end, int) for end in span):
            self._refuse(f"{key} has {json.dumps(span)}, expected [start, end] in whole numbers")
        return span[0], span[1]

    def _slices(self, count: int) -> list[dict[str, float]]:
        found: list[dict[str, float]] = [{} for _ in range(count)]
        if self.record.get("slices") is None:
            return found
        for name, probabilities in self._value("slices", dict, "an object of slices").items():
            if name == RESERVED_SLICE:
                self._refuse(f"slices: the name {name} is reserved for all scored mentions; choose another")
            self._check_probabilities(name, probabilities, count)
            for place, of in enumerate(found):
                of[name] = float(probabilities[str(place)])
        return found

    def _check_probabilities(self, name: str, given: Any, count: int) -> None:
        if not isinstance(given, dict) or set(given) != {str(place) for place in range(count)}:
            keys = f"keys {', '.join(given) or 'none'}" if isinstance(given, dict) else _kind(given)
            last = f'"0" to "{count - 1}"' if count else "none"
            self._refuse(f"slices.{name} has {keys}, expected a probability for each alias: {last}")
        for place, value in given.items():
            if not (_is(value, int) or isinstance(value, float)) or not 0 <= value <= 1:
                self._refuse(f"slices.{name}.{place} is {json.dumps(value)}, expected a number from 0 to 1")

    def _source(self) -> tuple[str, str] | None:
        if self.record.get("parent_qid") is None:
            return None
        qid = self._value("parent_qid", str, "a text")
        title = self.record.get("parent_title")
        return qid, "" if title is None else self._value("parent_title", str, "a text")


def _is(value: Any, kind: type) -> bool:
    """Whether a JSON value is of a kind; true and false are no numbers."""
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
