"""Dictionaries: words with their frequencies in texts. Each line has a word, a tab and a number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path

from toolkit.errors import DataError
from toolkit.files import open_atomic
from toolkit.workloads.spelling.data.texts.text_files import reading
from toolkit.workloads.spelling.data.texts.token_types import is_special
from toolkit.workloads.spelling.data.texts.words import pieces_of

#: Python does not convert texts with many more digits.
_MOST_DIGITS = 4000


def read_dictionary(path: Path, most: int | None = None) -> dict[str, int]:
    """Read a dictionary in the order of its lines. Raises DataError naming file and line.

    most  number of lines that are read; None: all
    """
    words: dict[str, int] = {}
    with reading(path), open(path, encoding="utf-8-sig") as stream:
        for number, line in enumerate(islice(stream, most), start=1):
            word, tab, frequency = line.rstrip("\n").partition("\t")
            if not (tab and word and frequency.isdecimal() and len(frequency) <= _MOST_DIGITS):
                raise DataError(
                    f"{path}:{number}: found {line.rstrip()!r}, expected a word, a tab and a number"
                )
            if word in words:
                raise DataError(f"{path}:{number}: {word!r} is listed twice; keep one of the lines")
            words[word] = int(frequency)
    return words


def write_dictionary(path: Path, words: Mapping[str, int]) -> None:
    """Write a dictionary in the order of `words`, atomically."""
    with open_atomic(path) as stream:
        stream.writelines(f"{word}\t{frequency}\n" for word, frequency in words.items())


def count_words(lines: Iterable[str]) -> Counter[str]:
    """Count the words of texts, case-sensitively, without punctuation, numbers and addresses."""
    # Whole words are counted first, so that each distinct word is split only once.
    whole = Counter[str]()
    for line in lines:
        whole.update(line.split())
    counts = Counter[str]()
    for word, count in whole.items():
        for piece in pieces_of(word):
            if not is_special(piece.text):
                counts[piece.text] += count
    return counts


def most_frequent(words: Mapping[str, int], n: int | None = None, at_least: int = 1) -> dict[str, int]:
    """Return the n most frequent words (None: all), most frequent first, ties in alphabetical order.

    at_least  lowest frequency of a word that is kept
    """
    kept = (pair for pair in words.items() if pair[1] >= at_least)
    return dict(sorted(kept, key=lambda pair: (-pair[1], pair[0]))[:n])
