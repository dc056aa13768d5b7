"""Put words back that a model has left out of a text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rapidfuzz.distance import Levenshtein

from toolkit.workloads.spelling.metrics.edits import matching_words

#: Steps of an alignment: a number of words of the text, and the number of written words that replace them.
#: (1, 0) leaves a word out, (0, 1) adds one. The first of several steps with equal costs is taken.
_STEPS = ((1, 0), (1, 1), (2, 1), (1, 2), (2, 2), (3, 1), (1, 3), (0, 1))
#: Largest stretch that is aligned: its number of words times the number of words written for it.
_MOST_PAIRS = 4096


def with_lost_words(text: str, made: str) -> str:
    """Return a model's correction of a text, with each word that it left out at its place.

    Both texts are normalised. Between words that stayed, words are aligned with the fewest edited characters;
    they may be joined, split and added. A long stretch in which no word stayed is left unchanged.
    Raises DataError for texts that are too long and too different to be compared.
    """
    return " ".join(_all_words(text.split(), made.split(), *matching_words([text], [made])[0]))


def _all_words(
    words: Sequence[str], others: Sequence[str], kept: frozenset[int], kept_there: frozenset[int]
) -> Iterator[str]:
    start = start_there = 0
    for end, end_there in zip(sorted(kept), sorted(kept_there), strict=True):
        yield from _between(words[start:end], others[start_there:end_there])
        yield words[end]
        start, start_there = end + 1, end_there + 1
    yield from _between(words[start:], others[start_there:])


def _between(words: Sequence[str], others: Sequence[str]) -> Iterator[str]:
    """Yield the written words of a stretch in which no word stayed, and the words that were left out."""
    if len(words) * len(others) > _MOST_PAIRS:
        yield from words
        return
    steps = _best_steps(words, others)
    place, there = 0, 0
    while place < len(words) or there < len(others):
        of_text, written = steps[place][there]
        yield from others[there : there + written] if written else words[place : place + of_text]
        place, there = place + of_text, there + written


def _best_steps(words: Sequence[str], others: Sequence[str]) -> list[list[tuple[int, int]]]:
    """Return the next step of a cheapest alignment, for each pair of places."""
    rows, columns = len(words) + 1, len(others) + 1
    costs = [[0] * columns for _ in range(rows)]
    best = [[(0, 0)] * columns for _ in range(rows)]
    for place in reversed(range(rows)):
        for there in reversed(range(columns)):
            steps = [(a, b) for a, b in _STEPS if place + a < rows and there + b < columns]
            if steps:
                totals = [
                    _cost(words[place : place + a], others[there : there + b]) + costs[place + a][there + b]
                    for a, b in steps
                ]
                costs[place][there] = min(totals)
                best[place][there] = steps[totals.index(min(totals))]
    return best


def _cost(words: Sequence[str], others: Sequence[str]) -> int:
    """Return the number of edited characters, plus 1 for each space that was inserted, deleted or moved."""
    moved = max(len(words), len(others), 1) - 1
    return Levenshtein.distance("".join(words), "".join(others)) + moved
