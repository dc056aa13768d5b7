"""Counts of what was found and what should have been found."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Self

from toolkit.nlp.ratio import ratio


class Additive:
    """Base of dataclasses whose fields add up: scores of parts to that of the whole."""

    __slots__: tuple[str, ...] = ()

    def __add__(self, other: Self) -> Self:
        return type(self)(**{name: getattr(self, name) + getattr(other, name) for name in self.__slots__})


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts(Additive):
    """True and false positives, and false negatives."""

    true_positives: int = 0
    false_positives: int = 0
    false_negatives: int = 0

    @classmethod
    def of_sets(cls, gold: Set[int], found: Set[int]) -> Counts:
        right = len(gold & found)
        return cls(
            true_positives=right, false_positives=len(found) - right, false_negatives=len(gold) - right
        )

    @classmethod
    def of_sums(cls, found: float, wrong: float, missed: float) -> Counts:
        """Those of sums over the ranks, in the order of the fields."""
        return cls(true_positives=round(found), false_positives=round(wrong), false_negatives=round(missed))

    def figures(self) -> dict[str, float]:
        """F1, precision and recall by name."""
        return {"f1": self.f1, "precision": self.precision, "recall": self.recall}

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


#: Nothing was found, and nothing should have been.
NOTHING = Counts()
