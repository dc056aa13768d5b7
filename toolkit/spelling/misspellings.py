"""Listed misspellings: correct word -> how people misspell it."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from toolkit.errors import DataError
from toolkit.files import write_atomic

Listed: TypeAlias = Mapping[str, Sequence[str]]

#: More edits than that, and it is another word.
MAX_EDITS = 10


class Misspellings:
    """Looks misspellings of words up, in the word's own case."""

    def __init__(self, listed: Listed) -> None:
        self._listed = {word: tuple(wrongs) for word, wrongs in listed.items() if wrongs}

    @classmethod
    def load(cls, path: Path) -> Misspellings:
        """Read them from a JSON file, where they are words. Raises DataError."""
        listed = read_misspellings(path)
        for word, wrongs in listed.items():
            for text in (word, *wrongs):
                if len(text.split()) != 1:
                    # Words of a text and of its target would no longer be as many.
                    raise DataError(f"{path}: of {word!r}, {text!r} is not one word; take it out")
        return cls(listed)

    def of(self, word: str) -> tuple[str, ...]:
        """Return the misspellings of a word, none of which is the word; of `The` those of `the`, with a T."""
        return tuple(dict.fromkeys(self._found(word)))

    def _found(self, word: str) -> Iterator[str]:
        yield from (wrong for wrong in self._listed.get(word, ()) if wrong != word)
        if (case := _case_of(word)) is not None:
            cased = (case(wrong) for wrong in self._listed.get(word.lower(), ()))
            yield from (wrong for wrong in cased if wrong != word)


def _case_of(word: str) -> Callable[[str], str] | None:
    """What gives a lower-case text the case of a word; None for lower and for mixed case."""
    if word[:1].isupper() and word[1:] == word[1:].lower():
        return lambda text: text[:1].upper() + text[1:]
    return str.upper if word.isupper() else None


def read_misspellings(path: Path) -> dict[str, list[str]]:
    """Read a JSON object of lists of texts. Raises DataError."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise DataError(f"{path} is not JSON ({error}); expected an object: word -> misspellings") from error
    if not isinstance(value, dict):
        raise DataError(f"{path} holds no object; expected one: correct word -> list of its misspellings")
    for word, wrongs in value.items():
        if not isinstance(wrongs, list) or not all(isinstance(wrong, str) and wrong for wrong in wrongs):
            raise DataError(f"{path}: of {word!r}, expected a list of misspellings, which are texts")
    return value


def write_misspellings(path: Path, listed: Listed) -> None:
    """Write a JSON file, one word a line, sorted; it appears when it is whole."""
    entries = (
        f"{json.dumps(word, ensure_ascii=False)}: {json.dumps(sorted(listed[word]), ensure_ascii=False)}"
        for word in sorted(listed)
    )
    write_atomic(path, "{\n" + ",\n".join(entries) + "\n}\n")


def read_codespell(path: Path) -> dict[str, list[str]]:
    """Read a dictionary of codespell, of lines `wrong->right` or `wrong->right, right2, reason`.

    Raises DataError naming file and line.
    """
    listed: defaultdict[str, list[str]] = defaultdict(list)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    for number, line in enumerate(lines, start=1):
        wrong, arrow, rights = line.partition("->")
        if not arrow:
            raise DataError(
                f"{path}:{number}: found {line!r}, expected wrong->right or wrong->right, right2,"
            )
        # What stands behind the last comma says why it is not corrected by itself.
        known, comma, _ = rights.rpartition(",")
        for right in (known if comma else rights).split(","):
            listed[right.strip()].append(wrong.strip())
    return dict(listed)


def merged(lists: Iterable[Listed]) -> dict[str, list[str]]:
    """Put lists together; a misspelling that several have stands once."""
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for listed in lists:
        for word, wrongs in listed.items():
            found[word].update(dict.fromkeys(wrongs))
    return {word: list(wrongs) for word, wrongs in found.items()}


def usable(listed: Listed, dictionary: Collection[str]) -> dict[str, list[str]]:
    """Keep pairs of letters alone, whose word the dictionary has (in its case or lower), and near enough."""

    def keeps(word: str, wrong: str) -> bool:
        return wrong.isalpha() and wrong != word and is_near(word, wrong)

    found = {
        word: [wrong for wrong in wrongs if keeps(word, wrong)]
        for word, wrongs in listed.items()
        if word.isalpha() and (word in dictionary or word.lower() in dictionary)
    }
    return {word: wrongs for word, wrongs in found.items() if wrongs}


def is_near(word: str, wrong: str) -> bool:
    """Whether at most MAX_EDITS letters are inserted, deleted or replaced (Wagner and Fischer 1974)."""
    if max(len(word), len(wrong)) <= MAX_EDITS:
        return True
    row = list(range(len(wrong) + 1))
    for deleted, letter in enumerate(word, start=1):
        before, row = row, [deleted]
        for place, other in enumerate(wrong):
            row.append(min(before[place] + (letter != other), before[place + 1] + 1, row[-1] + 1))
    return row[-1] <= MAX_EDITS


def divide(listed: Listed, shares: Mapping[str, float], seed: int) -> dict[str, dict[str, list[str]]]:
    """Divide misspellings into splits, of which each gets its share of them.

    The place is a hash of the misspelling (lower case) and the seed. So one that several words have is in
    one split, which a test on unseen misspellings needs, and adding some moves no other.
    """
    splits: dict[str, dict[str, list[str]]] = {name: {} for name in shares}
    for word, wrongs in listed.items():
        for wrong in wrongs:
            splits[_split_of(wrong, shares, seed)].setdefault(word, []).append(wrong)
    return splits


def _split_of(wrong: str, shares: Mapping[str, float], seed: int) -> str:
    digest = hashlib.sha256(f"{seed}\n{wrong.lower()}".encode()).digest()
    at = int.from_bytes(digest[:8], "big") / 2**64 * sum(shares.values())
    for name, share in shares.items():
        if at < share:
            return name
        at -= share
    return name
