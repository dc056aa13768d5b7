"""Counts of positives, and scores of lines that are computed from them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

from toolkit.nlp.ratio import ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class Additive:
    """Base of scores with fields that add up: the sum of the scores of parts is the score of the whole."""

    def __add__(self, other: Self) -> Self:
        names = [field.name for field in fields(self)]
        return type(self)(**{name: getattr(self, name) + getattr(other, name) for name in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts(Additive):
    """True and false positives, and false negatives."""

    true_positives: int = 0
    false_positives: int = 0
    false_negatives: int = 0

    @classmethod
    def of_sums(cls, *sums: float) -> Self:
        """Return the counts from sums over all ranks, in the order of the fields."""
        names = [field.name for field in fields(cls)]
        return cls(**dict(zip(names, map(round, sums), strict=True)))

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


#: Nothing was found, and nothing should have been found.
NOTHING = Counts()


@dataclass(frozen=True, slots=True, kw_only=True)
class LineScore(Additive):
    """The counts of all lines together, and the F1 of each line.

    f1_sum  sum of the F1 of the lines; a line counts 1 if nothing had to be done and nothing was done
    """

    counts: Counts = NOTHING
    lines: int = 0
    f1_sum: float = 0.0

    @property
    def sequence_f1(self) -> float:
        """Mean F1 of a line."""
        return ratio(self.f1_sum, self.lines)
