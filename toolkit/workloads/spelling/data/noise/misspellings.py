"""Listed misspellings: correct word -> how people misspell it."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from rapidfuzz.distance import Levenshtein

from toolkit.errors import DataError
from toolkit.files import write_atomic
from toolkit.workloads.spelling.data.texts.text_files import reading

Listed: TypeAlias = Mapping[str, Sequence[str]]

#: A misspelling with more edits is taken for a different word.
MAX_EDITS = 10


class Misspellings:
    """Looks up the misspellings of a word, in the case of that word."""

    def __init__(self, listed: Listed) -> None:
        self._listed = listed

    @classmethod
    def load(cls, path: Path) -> Misspellings:
        """Read misspellings from a JSON file of single words. Raises DataError."""
        listed = read_misspellings(path)
        for word, wrongs in listed.items():
            for text in (word, *wrongs):
                if len(text.split()) != 1:
                    # Otherwise a text and its target would have different numbers of words.
                    raise DataError(f"{path}: {text!r}, listed for {word!r}, is not one word; remove it")
        return cls(listed)

    def of(self, word: str) -> tuple[str, ...]:
        """Return the misspellings of a word, without itself; `The` has those of `the`, capitalised."""
        found = list(self._listed.get(word, ()))
        if (case := _case_of(word)) is not None:
            found += map(case, self._listed.get(word.lower(), ()))
        return tuple(dict.fromkeys(wrong for wrong in found if wrong != word))


def _case_of(word: str) -> Callable[[str], str] | None:
    """Return the function from lower case to the case of a word; None for lower and mixed case."""
    if word[:1].isupper() and word[1:] == word[1:].lower():
        return lambda text: text[:1].upper() + text[1:]
    return str.upper if word.isupper() else None


def read_misspellings(path: Path) -> dict[str, list[str]]:
    """Read a JSON object of lists of texts. Raises DataError."""
    try:
        with reading(path):
            value = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not JSON ({error}); expected an object: word -> misspellings") from error
    if not isinstance(value, dict):
        raise DataError(f"{path}: expected a JSON object: correct word -> list of its misspellings")
    for word, wrongs in value.items():
        if not isinstance(wrongs, list) or not all(isinstance(wrong, str) and wrong for wrong in wrongs):
            raise DataError(f"{path}: expected a list of strings for {word!r}, its misspellings")
    return value


def write_misspellings(path: Path, listed: Listed) -> None:
    """Write a sorted JSON file, one word per line, atomically."""
    entries = (
        f"{json.dumps(word, ensure_ascii=False)}: {json.dumps(sorted(listed[word]), ensure_ascii=False)}"
        for word in sorted(listed)
    )
    write_atomic(path, "{\n" + ",\n".join(entries) + "\n}\n")


def read_codespell(path: Path) -> dict[str, list[str]]:
    """Read a codespell dictionary with lines `wrong->right` or `wrong->right, right2, reason`.

    Raises DataError naming file and line.
    """
    listed: defaultdict[str, list[str]] = defaultdict(list)
    with reading(path):
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    for number, line in enumerate(lines, start=1):
        wrong, arrow, rights = line.partition("->")
        if not arrow:
            raise DataError(
                f"{path}:{number}: found {line!r}, expected wrong->right or wrong->right, right2,"
            )
        # The text after the last comma is codespell's reason not to correct this word automatically.
        known, comma, _ = rights.rpartition(",")
        for right in (known if comma else rights).split(","):
            listed[right.strip()].append(wrong.strip())
    return dict(listed)


def merged(lists: Iterable[Listed]) -> dict[str, list[str]]:
    """Merge lists, without duplicates."""
    found: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for listed in lists:
        for word, wrongs in listed.items():
            found[word].update(dict.fromkeys(wrongs))
    return {word: list(wrongs) for word, wrongs in found.items()}


def usable(listed: Listed, dictionary: Collection[str]) -> dict[str, list[str]]:
    """Keep the pairs of two words of letters that are at most MAX_EDITS apart.

    The right word, or its lower case, must be in the dictionary.
    """

    def keeps(word: str, wrong: str) -> bool:
        is_near = Levenshtein.distance(word, wrong, score_cutoff=MAX_EDITS) <= MAX_EDITS
        return wrong.isalpha() and wrong != word and is_near

    found = {
        word: [wrong for wrong in wrongs if keeps(word, wrong)]
        for word, wrongs in listed.items()
        if word.isalpha() and (word in dictionary or word.lower() in dictionary)
    }
    return {word: wrongs for word, wrongs in found.items() if wrongs}


def divide(listed: Listed, shares: Mapping[str, float], seed: int) -> dict[str, dict[str, list[str]]]:
    """Divide misspellings into splits of these relative sizes.

    A hash of the misspelling (in lower case) and the seed decides. So a misspelling of several words is in
    one split only, as a test on unseen misspellings requires, and added misspellings do not move others.
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
