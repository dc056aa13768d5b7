"""Read WordNet's files, and make sentences and an entity database from synsets, senses and usage examples.

Needs the standard library.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

#: Enough for every sense of a lemma: the verb "break" has 59.
MAX_CANDIDATES = 64
MAX_CONNECTIONS = 100

_PARTS = ("noun", "verb", "adj", "adv")
#: The part of speech in a sense key; 5 is an adjective in the cluster of another adjective.
_PART_OF_KEY = {"1": "noun", "2": "verb", "3": "adj", "4": "adv", "5": "adj"}
_PART_OF_LETTER = {"n": "noun", "v": "verb", "a": "adj", "s": "adj", "r": "adv"}
_LETTER = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
_POINTERS = {"@": "hypernym", "@i": "instance of", "&": "similar to", "\\": "pertains to"}
#: The lexicographers' files in the order of their numbers (lexnames(5WN)).
_LEXNAMES = [
    *("adj.all", "adj.pert", "adv.all", "noun.Tops", "noun.act", "noun.animal", "noun.artifact"),
    *("noun.attribute", "noun.body", "noun.cognition", "noun.communication", "noun.event", "noun.feeling"),
    *("noun.food", "noun.group", "noun.location", "noun.motive", "noun.object", "noun.person"),
    *("noun.phenomenon", "noun.plant", "noun.possession", "noun.process", "noun.quantity", "noun.relation"),
    *("noun.shape", "noun.state", "noun.substance", "noun.time", "verb.body", "verb.change"),
    *("verb.cognition", "verb.communication", "verb.competition", "verb.consumption", "verb.contact"),
    *("verb.creation", "verb.emotion", "verb.motion", "verb.perception", "verb.possession", "verb.social"),
    *("verb.stative", "verb.weather", "adj.ppl"),
]
_QUOTED = re.compile(r'"([^"]*)"')
_MARKER = re.compile(r"\((?:a|p|ip)\)$")

#: Part of speech and offset: the name of a synset in WordNet's own files.
Place = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Synset:
    """A meaning and its lemmas; in WordNet's lemmas, spaces are underscores."""

    place: Place
    letter: str
    lemmas: tuple[str, ...]
    lexname: str
    pointers: tuple[tuple[str, Place], ...]
    gloss: str

    @property
    def examples(self) -> list[str]:
        """The quoted texts of the gloss, without duplicates."""
        return list(dict.fromkeys(text.strip() for text in _QUOTED.findall(self.gloss) if text.strip()))

    @property
    def definition(self) -> str:
        """The gloss before its first quotation, because an example would reveal the answer."""
        return self.gloss.partition('"')[0].strip(" ;:,-")

    @property
    def title(self) -> str:
        return ", ".join(spoken(lemma) for lemma in self.lemmas)


class WordNet:
    """All synsets by place; tag counts and numbers of the senses of a lemma."""

    def __init__(self, files: Mapping[str, str]) -> None:
        """Parse `files`: texts of data.noun, … noun.exc, … and index.sense. Raises KeyError, ValueError."""
        self.synsets = {
            synset.place: synset for part in _PARTS for synset in _synsets(part, files[f"data.{part}"])
        }
        self.tags: dict[tuple[str, str], dict[Place, int]] = defaultdict(dict)
        self._numbers: dict[tuple[str, Place], str] = {}
        self._read_senses(files["index.sense"])
        self._irregular: dict[tuple[str, str], list[str]] = defaultdict(list)
        for part in _PARTS:
            for line in files[f"{part}.exc"].splitlines():
                inflected, *bases = line.split()
                for base in bases:
                    self._irregular[part, base].append(inflected)

    def _read_senses(self, text: str) -> None:
        for line in text.splitlines():
            key, offset, number, count = line.split()
            lemma, _, rest = key.partition("%")
            part = _PART_OF_KEY[rest[0]]
            self.tags[lemma, part][part, offset] = int(count)
            self._numbers[lemma, (part, offset)] = number

    def name(self, place: Place) -> str:
        """Name a synset by its first lemma, part of speech and number of the sense: overtake.v.01."""
        synset = self.synsets[place]
        lemma = synset.lemmas[0].lower()
        return f"{lemma}.{synset.letter}.{int(self._numbers[lemma, place]):02d}"

    def forms(self, lemma: str, part: str) -> list[str]:
        """Return the forms of a lemma, the longest first; only one of several words is inflected."""
        words = spoken(lemma).lower().split(" ")
        at = 0 if part == "verb" else len(words) - 1
        word = words[at]
        endings = {word, *_regular(word, part), *self._irregular.get((part, word), ())}
        whole = {" ".join([*words[:at], each.replace("_", " "), *words[at + 1 :]]) for each in endings}
        return sorted(whole, key=lambda form: (-len(form), form))


def spoken(lemma: str) -> str:
    """Return a lemma with spaces instead of underscores."""
    return lemma.replace("_", " ")


def alias(lemma: str, part: str) -> str:
    """Return the alias of a lemma, with its part of speech: senses of another part are not candidates."""
    return f"{spoken(lemma).lower()}.{_LETTER[part]}"


def entity_files(wordnet: WordNet) -> dict[str, dict[str, Any]]:
    """Return the files of the entity database: path -> object."""
    names = {place: wordnet.name(place) for place in wordnet.synsets}
    synsets = {names[place]: synset for place, synset in wordnet.synsets.items()}
    return {
        "entity_mappings/alias2qids.json": {
            alias(lemma, part): _by_score({names[place]: count for place, count in senses.items()})
            for (lemma, part), senses in wordnet.tags.items()
        },
        "entity_mappings/qid2title.json": {name: synset.title for name, synset in synsets.items()},
        "entity_mappings/qid2desc.json": {name: synset.definition for name, synset in synsets.items()},
        "entity_mappings/config.json": {"max_candidates": MAX_CANDIDATES},
        "type_mappings/lexname/qid2typenames.json": {name: [each.lexname] for name, each in synsets.items()},
        "type_mappings/lexname/config.json": {"max_types": 1},
        "kg_mappings/qid2relations.json": {
            name: _relations(synset, names) for name, synset in synsets.items() if synset.pointers
        },
        "kg_mappings/config.json": {"max_connections": MAX_CONNECTIONS},
    }


@dataclass(kw_only=True)
class Left:
    """Number of omitted usage examples: no lemma of the synset is found, or there is only one candidate."""

    not_found: int = 0
    single: int = 0


def sentences(wordnet: WordNet, left: Left) -> Iterator[dict[str, Any]]:
    """Yield a sentence for each usage example of a lemma with more than one candidate.

    The mention is the first lemma of the synset that occurs in the sentence; the source is the synset.
    """
    number = 0
    for place, synset in wordnet.synsets.items():
        for index, text in enumerate(synset.examples):
            found = next(_found(wordnet, synset, text), None)
            if found is None:
                left.not_found += 1
            elif len(wordnet.tags[found[0].lower(), place[0]]) < 2:
                left.single += 1
            else:
                lemma, span = found
                name = wordnet.name(place)
                yield {
                    "sent_idx_unq": number,
                    "sentence": text,
                    "aliases": [alias(lemma, place[0])],
                    "char_spans": [span],
                    "qids": [name],
                    "gold": [True],
                    "parent_qid": name,
                    "parent_title": synset.title,
                    "doc_sent_idx": index,
                }
                number += 1


def baselines(rows: Iterable[Mapping[str, Any]], candidates: Mapping[str, Any]) -> tuple[float, float]:
    """Return the accuracy of a random candidate, and of the most frequent sense."""
    total, chance, frequent = 0, 0.0, 0
    for row in rows:
        of = candidates[row["aliases"][0]]
        total += 1
        chance += 1 / len(of)
        frequent += of[0][0] == row["qids"][0]
    return chance / total, frequent / total


def _synsets(part: str, text: str) -> Iterator[Synset]:
    """Read a data file: offset, file number, letter, count, lemmas, pointers, gloss (wndb(5WN))."""
    for line in text.splitlines():
        # The licence at the top is indented.
        if line.startswith("  "):
            continue
        head, _, gloss = line.partition("|")
        fields = head.split()
        end = 4 + 2 * int(fields[3], 16)
        pointers = fields[end + 1 : end + 1 + 4 * int(fields[end])]
        quads = [pointers[at : at + 4] for at in range(0, len(pointers), 4)]
        yield Synset(
            place=(part, fields[0]),
            letter=fields[2],
            lemmas=tuple(_MARKER.sub("", lemma) for lemma in fields[4:end:2]),
            lexname=_LEXNAMES[int(fields[1])],
            pointers=tuple(
                (_POINTERS[symbol], (_PART_OF_LETTER[letter], offset))
                for symbol, offset, letter, _ in quads
                if symbol in _POINTERS
            ),
            gloss=gloss.strip(),
        )


def _by_score(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda each: (each[1], each[0]), reverse=True)


def _relations(synset: Synset, names: Mapping[Place, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for relation, place in synset.pointers:
        if names[place] not in found.setdefault(relation, []):
            found[relation].append(names[place])
    return found


def _found(wordnet: WordNet, synset: Synset, text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the lemmas of a synset that occur in a text, with their start and end."""
    lower = text.lower()
    for lemma in synset.lemmas:
        for form in wordnet.forms(lemma, synset.place[0]):
            span = _whole_words(lower, form)
            if span is not None:
                yield lemma, span
                break


def _whole_words(text: str, form: str) -> tuple[int, int] | None:
    start = text.find(form)
    while start >= 0:
        end = start + len(form)
        if not text[start - 1 : start].isalnum() and not text[end : end + 1].isalnum():
            return start, end
        start = text.find(form, start + 1)
    return None


def _regular(word: str, part: str) -> Iterator[str]:
    """Yield the regular inflections of a word; some are not words and will not be found."""
    stem = word[:-1]
    if part in ("noun", "verb"):
        yield from (word + "s", word + "es")
        if word.endswith("y"):
            yield stem + "ies"
    if part == "verb":
        yield from (word + "ed", word + "ing", word + word[-1] + "ed", word + word[-1] + "ing")
        if word.endswith("y"):
            yield stem + "ied"
        if word.endswith("e"):
            yield from (word + "d", stem + "ing")
        if word.endswith("ie"):
            yield word[:-2] + "ying"
    if part in ("adj", "adv"):
        yield from (word + "er", word + "est", word + word[-1] + "er", word + word[-1] + "est")
        if word.endswith("e"):
            yield from (word + "r", word + "st")
        if word.endswith("y"):
            yield from (stem + "ier", stem + "iest")
