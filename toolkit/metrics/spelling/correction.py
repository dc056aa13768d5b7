"""Scores of corrections: which misspelt words were restored, and which others were spoilt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from toolkit.metrics.slice_score import ratio
from toolkit.metrics.spelling.counts import NOTHING, Counts
from toolkit.metrics.spelling.edits import (
    Edit,
    Words,
    edited_words,
    edits_between,
    matching_words,
    word_at,
)
from toolkit.spelling.words import normalised


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectionScore:
    """Words restored, spoilt and left wrong, pooled and by line; scores of parts add up.

    f1_sum  sum of the F1 of the lines; that of a line in which nothing is and was to be done is 1
    """

    counts: Counts = NOTHING
    lines: int = 0
    f1_sum: float = 0.0

    def __add__(self, other: CorrectionScore) -> CorrectionScore:
        return CorrectionScore(
            counts=self.counts + other.counts,
            lines=self.lines + other.lines,
            f1_sum=self.f1_sum + other.f1_sum,
        )

    @property
    def sequence_f1(self) -> float:
        """Mean over lines of their F1."""
        return ratio(self.f1_sum, self.lines)


def score_corrections(
    inputs: Sequence[str],
    predictions: Sequence[str],
    golds: Sequence[str],
    misspelt: Sequence[Words] | None = None,
) -> CorrectionScore:
    """Compare what was made of the inputs with what should have been.

    Of gold words that are misspelt in the input, those that a longest common subsequence of the words of
    prediction and gold has are true positives, the others false negatives. Words of the input that were
    changed into anything else than words of that subsequence are false positives. So a positive is a
    word of the gold or of the input: to change nothing may give a recall above 0, where an edit is seen
    in another word than the one that the subsequence leaves out.

    misspelt  what `misspelt_words` gives: worth keeping where many predictions are scored

    Raises DataError for lines that are too long and too different to be compared.
    """
    texts, made, right = ([normalised(line) for line in lines] for lines in (inputs, predictions, golds))
    wrong = misspelt_words(texts, right) if misspelt is None else misspelt
    edits, matches = edits_between(texts, made), matching_words(made, right)
    found = (_score(*line) for line in zip(texts, made, wrong, edits, matches, strict=True))
    return sum(found, CorrectionScore())


def misspelt_words(inputs: Sequence[str], golds: Sequence[str]) -> list[Words]:
    """Return the words of each gold line that the edits from the input to it touch. Raises DataError."""
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
    """Return the words of the text of which only words among `matching` were made.

    Words that were merged match together, with all that was made of them; so does a word that was split.
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
    """Return the words merged with the one after them, and by word how often it was split."""
    merged, splits = set(), Counter[int]()
    for kind, start, to in edits:
        if kind == "delete" and text[start] == " ":
            merged.add(word_at(text, start))
        elif kind == "insert" and made[to] == " ":
            splits[word_at(text, start)] += 1
    return merged, splits
