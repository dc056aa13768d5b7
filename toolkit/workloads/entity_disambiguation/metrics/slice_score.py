"""The counts of a slice of mentions. Imports no numpy, because reports read scores before they draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toolkit.nlp.ratio import ratio

#: A label is the position of the gold among the candidates, or one of these. NOT_SCORED: the gold is unknown
#: or a weak label. OUTSIDE: the gold is not a candidate, so it cannot be predicted. If there is a class for
#: "no candidate" (at position 0), this class is the gold instead.
NOT_SCORED = -1
OUTSIDE = -2

#: The shares of a SliceScore: right predictions of the model and of the most popular candidates.
SHARES = ("accuracy", "accuracy_not_nc", "popularity", "popularity_not_nc")


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceScore:
    """The number of mentions of a slice, and of right predictions.

    correct  the prediction is the gold
    popular  the first candidate is the gold, so it is right without reading the text
    not_nc   only mentions with a gold among the candidates
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
        """Return counts and shares by name; a share of no mentions is None."""
        counts = {name: getattr(self, name) for name in self.__slots__}
        wholes = 2 * (self.mentions, self.mentions_not_nc)
        found = zip(SHARES, wholes, strict=True)
        return counts | {name: getattr(self, name) if whole else None for name, whole in found}
