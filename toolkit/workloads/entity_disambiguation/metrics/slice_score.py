"""Counts in a slice of mentions. Without numpy, as reports read it before they draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toolkit.nlp.ratio import ratio

#: Labels of mentions, where a label is the place of the gold among the candidates.
#: NOT_SCORED: the gold is unknown or a weak label. OUTSIDE: it is not among the candidates, so it cannot be
#: predicted; with a class for "no candidate" at place 0 that class is the gold instead.
NOT_SCORED = -1
OUTSIDE = -2

#: Shares of a SliceScore: right predictions of the model, and of the most popular candidates.
SHARES = ("accuracy", "accuracy_not_nc", "popularity", "popularity_not_nc")


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceScore:
    """Mentions of a slice, and how many of them are right.

    correct  the prediction is the gold
    popular  the first candidate is the gold: what is right without looking at the text
    not_nc   of mentions whose gold is among the candidates
    """

    mentions: int = 0
    mentions_not_nc: int = 0
    correct: int = 0
    correct_not_nc: int = 0
    popular: int = 0
    popular_not_nc: int = 0

    @property
    def accuracy(self) -> float:
        return ratio(self.correct, self.mentions)

    @property
    def accuracy_not_nc(self) -> float:
        return ratio(self.correct_not_nc, self.mentions_not_nc)

    @property
    def popularity(self) -> float:
        return ratio(self.popular, self.mentions)

    @property
    def popularity_not_nc(self) -> float:
        return ratio(self.popular_not_nc, self.mentions_not_nc)

    def to_json(self) -> dict[str, Any]:
        """Return counts and shares by name."""
        return {name: getattr(self, name) for name in (*self.__slots__, *SHARES)}
