"""What was found and what was to be found."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from toolkit.metrics.slice_score import ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Positives: rightly found, wrongly found, overlooked. Counts of parts add up to those of the whole."""

    true_positives: int = 0
    false_positives: int = 0
    false_negatives: int = 0

    @classmethod
    def of_sets(cls, gold: Set[int], found: Set[int]) -> Counts:
        right = len(gold & found)
        return cls(
            true_positives=right, false_positives=len(found) - right, false_negatives=len(gold) - right
        )

    def __add__(self, other: Counts) -> Counts:
        return Counts(**{name: getattr(self, name) + getattr(other, name) for name in self.__slots__})

    @property
    def precision(self) -> float:
        return ratio(self.true_positives, self.true_positives + self.false_positives)

    @property
    def recall(self) -> float:
        return ratio(self.true_positives, self.true_positives + self.false_negatives)

    @property
    def f1(self) -> float:
        wrong = self.false_positives + self.false_negatives
        return ratio(2 * self.true_positives, 2 * self.true_positives + wrong)


#: Where nothing was found, and nothing was to be.
NOTHING = Counts()
