"""Scores of the detection of errors: in words, or in whole lines."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from toolkit.metrics.slice_score import ratio
from toolkit.metrics.spelling.counts import NOTHING, Counts
from toolkit.spelling.special import is_punctuation
from toolkit.spelling.words import pieces_of, words_of

_Labels = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionScore:
    """Labels compared, positive where there is an error; scores of parts add up to that of the whole.

    labels      words or lines
    equal       those that are labelled as they should be
    real_words  errors that are words of the dictionary, or punctuation; found_real: those found
    non_words   other errors; found_non: those found
    """

    counts: Counts = NOTHING
    labels: int = 0
    equal: int = 0
    real_words: int = 0
    found_real: int = 0
    non_words: int = 0
    found_non: int = 0

    def __add__(self, other: DetectionScore) -> DetectionScore:
        numbers = (name for name in self.__slots__ if name != "counts")
        return DetectionScore(
            counts=self.counts + other.counts,
            **{name: getattr(self, name) + getattr(other, name) for name in numbers},
        )

    @property
    def accuracy(self) -> float:
        return ratio(self.equal, self.labels)

    @property
    def real_word_rate(self) -> float:
        """Share of the errors that are words, that was found."""
        return ratio(self.found_real, self.real_words)

    @property
    def non_word_rate(self) -> float:
        """Share of the errors that are no words, that was found."""
        return ratio(self.found_non, self.non_words)


def score_labels(predictions: _Labels, golds: _Labels, real: _Labels | None = None) -> DetectionScore:
    """Compare labels, all [n]; real: whether what is labelled is a real word (`real_words`)."""
    right = predictions & golds
    real = np.zeros_like(golds) if real is None else real
    return DetectionScore(
        counts=Counts(
            true_positives=_count(right),
            false_positives=_count(predictions & ~golds),
            false_negatives=_count(golds & ~predictions),
        ),
        labels=len(golds),
        equal=_count(predictions == golds),
        real_words=_count(golds & real),
        found_real=_count(right & real),
        non_words=_count(golds & ~real),
        found_non=_count(right & ~real),
    )


def real_words(lines: Sequence[str], dictionary: Collection[str]) -> _Labels:
    """Return for each word of the lines whether all its pieces are in the dictionary or punctuation."""
    known: dict[str, bool] = {}
    words = [word for line in lines for word in words_of(line)]
    for word in words:
        if word not in known:
            known[word] = all(is_known(piece.text, dictionary) for piece in pieces_of(word))
    return np.fromiter((known[word] for word in words), bool, len(words))


def is_known(piece: str, dictionary: Collection[str]) -> bool:
    """Whether a piece of a word is punctuation or in the dictionary, as it stands or in lower case."""
    return is_punctuation(piece) or piece in dictionary or piece.lower() in dictionary


def _count(which: _Labels) -> int:
    return int(np.count_nonzero(which))
