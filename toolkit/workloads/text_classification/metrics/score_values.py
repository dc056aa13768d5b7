"""Scores of classes. Imports no numpy, because reports read scores before they draw."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassScore:
    """The scores of one class, from 0 to 1; support is the number of samples of the class.

    Counts and areas are None for runs of versions that did not write them.
    """

    label: str
    precision: float
    recall: float
    f1: float
    support: int
    true_positives: int | None = None
    false_positives: int | None = None
    false_negatives: int | None = None
    average_precision: float | None = None
    roc_auc: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingPoint:
    """A required precision or recall (`at`), and the best threshold for it with its scores.

    threshold  None if no threshold reaches `at`
    """

    at: float
    threshold: float | None
    precision: float
    recall: float
