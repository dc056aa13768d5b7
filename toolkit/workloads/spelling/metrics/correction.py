"""Scores of corrections: which misspelt words were restored, and which right words were spoilt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rapidfuzz.distance import Levenshtein

from toolkit.nlp.ratio import ratio
from toolkit.workloads.spelling.data.texts.words import normalised
from toolkit.workloads.spelling.metrics.counts import Counts, LineScore
from toolkit.workloads.spelling.metrics.edits import (
    Edit,
    Words,
    edited_words,
    edits_between,
    matching_words,
    word_at,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectionScore(LineScore):
    """Words that were restored (true positives), spoilt (false positives) and left wrong (false negatives).

    distances  sum of Levenshtein distances to the right lines, each divided by the length of the longer line
    """

    distances: float = 0.0

    @property
    def mned(self) -> float:
        """Mean normalised edit distance: 0 if all lines are right, 1 at worst."""
        return ratio(self.distances, self.lines)


def score_corrections(
    inputs: Sequence[str],
    predictions: Sequence[str],
    golds: Sequence[str],
    misspelt: Sequence[Words] | None = None,
) -> CorrectionScore:
    """Compare predictions for the inputs with the right lines.

    A gold word that is misspelt in the input is a true positive if it is in a longest common subsequence of
    the words of prediction and gold, else a false negative. A changed word of the input is a false positive
    unless all words that replaced it are in that subsequence. An unchanged text may have a recall above 0,
    because the edits and the subsequence may place an error in different words.

    misspelt  the result of `misspelt_words`; it can be kept to score many predictions

    Raises DataError for lines that are too long and too different to be compared.
    """
    texts, made, right = ([normalised(line) for line in lines] for lines in (inputs, predictions, golds))
    wrong = misspelt_words(texts, right) if misspelt is None else misspelt
    edits, matches = edits_between(texts, made), matching_words(made, right)
    found = (_score(*line) for line in zip(texts, made, wrong, edits, matches, strict=True))
    distances = sum(map(Levenshtein.normalized_distance, made, right))
    return replace(sum(found, CorrectionScore()), distances=distances)


def misspelt_words(inputs: Sequence[str], golds: Sequence[str]) -> list[Words]:
    """Return the words of each gold line that the edits from the input touch. Raises DataError."""
    texts, right = ([normalised(line) for line in lines] for lines in (inputs, golds))
    edits = edits_between(texts, right)
    return [edited_words(*line)[1] for line in zip(texts, right, edits, strict=True)]


def _score(
    text: str, made: str, misspelt: Words, edits: Sequence[Edit], matches: tuple[Words, Words]
) -> CorrectionScore:
    matching, restored = matches
    changed = edited_words(text, made, edits)[0]
    counts = Counts(
        true_positives=len(misspelt & restored),
        false_negatives=len(misspelt - restored),
        false_positives=len(changed - words_that_match(text, made, edits, matching)),
    )
    return CorrectionScore(counts=counts, lines=1, f1_sum=counts.f1 if misspelt or changed else 1.0)


def words_that_match(text: str, made: str, edits: Iterable[Edit], matching: Words) -> Words:
    """Return the words of the text that were converted only to words in `matching`.

    Merged words match together: all words made from them must be in `matching`. The same holds for the parts
    of a word that was split.
    """
    merged, splits = _merges_and_splits(text, made, edits)
    found: set[int] = set()
    group, start, end = [], 0, 1
    for word in range(len(text.split())):
        group.append(word)
        end += splits[word]
        if word in merged:
            continue
        if matching.issuperset(range(start, end)):
            found.update(group)
        group, start, end = [], end, end + 1
    return frozenset(found)


def _merges_and_splits(text: str, made: str, edits: Iterable[Edit]) -> tuple[set[int], Counter[int]]:
    """Return the words that were merged with the next word, and how often each word was split."""
    merged, splits = set(), Counter[int]()
    for kind, start, to in edits:
        if kind == "delete" and text[start] == " ":
            merged.add(word_at(text, start))
        elif kind == "insert" and made[to] == " ":
            splits[word_at(text, start)] += 1
    return merged, splits
