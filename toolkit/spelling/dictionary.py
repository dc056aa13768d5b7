"""Dictionaries: files of words with how often texts have them, a word, a tab and a number a line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from toolkit.errors import DataError
from toolkit.files import open_atomic
from toolkit.spelling.special import special_of
from toolkit.spelling.words import pieces_of


def read_dictionary(path: Path) -> dict[str, int]:
    """Read a dictionary in the order of its lines. Raises DataError naming file and line."""
    words: dict[str, int] = {}
    for number, line in enumerate(_lines(path), start=1):
        word, tab, frequency = line.rstrip("\n").partition("\t")
        if not (tab and word and frequency.isdecimal()):
            raise DataError(f"{path}:{number}: found {line.rstrip()!r}, expected a word, a tab and a number")
        if word in words:
            raise DataError(f"{path}:{number}: {word!r} stands there a second time; `merge` adds them up")
        words[word] = int(frequency)
    return words


def _lines(path: Path) -> Iterator[str]:
    try:
        with open(path, encoding="utf-8-sig") as stream:
            yield from stream
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8: {error}; save the file as UTF-8") from error


def write_dictionary(path: Path, words: Mapping[str, int]) -> None:
    """Write a dictionary in the order of `words`; the file appears when it is whole."""
    with open_atomic(path) as stream:
        stream.writelines(f"{word}\t{frequency}\n" for word, frequency in words.items())


def count_words(lines: Iterable[str]) -> Counter[str]:
    """Count the words of texts, in their case; punctuation, numbers and addresses are none."""
    # Whole words first: most have been met before, and are split and looked at once.
    whole = Counter[str]()
    for line in lines:
        whole.update(line.split())
    counts = Counter[str]()
    for word, count in whole.items():
        for piece in pieces_of(word):
            if special_of(piece.text) is None:
                counts[piece.text] += count
    return counts


def merge(dictionaries: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Add dictionaries up, word by word."""
    counts = Counter[str]()
    for words in dictionaries:
        counts.update(words)
    return dict(counts)


def most_frequent(words: Mapping[str, int], n: int | None = None, at_least: int = 1) -> dict[str, int]:
    """Return the n most frequent words, most frequent first, words of equal frequency by alphabet.

    n         null for all
    at_least  frequency that a word must have
    """
    kept = (pair for pair in words.items() if pair[1] >= at_least)
    return dict(sorted(kept, key=lambda pair: (-pair[1], pair[0]))[:n])
