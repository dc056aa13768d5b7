"""Words that a model has left out of a text, put back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rapidfuzz.distance import Levenshtein

from toolkit.workloads.spelling.metrics.edits import matching_words

#: How many words of the text may become how many others, a word that is left out and one that is added
#: included. Of equal costs the first one is taken.
_STEPS = ((1, 0), (1, 1), (2, 1), (1, 2), (2, 2), (3, 1), (1, 3), (0, 1))
#: Words of a text, times words that were written in their place, of which none is the same.
_MOST_PAIRS = 4096


def with_lost_words(text: str, made: str) -> str:
    """Return the text that a model made of this one, with each word that it left out at its place.

    Both are normalised. Between words that stayed, the words are aligned at the least cost in edited
    characters; they may be joined, split and added. A long stretch of which no word stayed is left unchanged.
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
    """Return the words that were written in a stretch of which no word stayed, and those left out."""
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
    """Return the next step of a cheapest alignment from each pair of places."""
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
    """Return the edited characters, and 1 for each space that words were joined or split at, or moved."""
    moved = max(len(words), len(others), 1) - 1
    return Levenshtein.distance("".join(words), "".join(others)) + moved
