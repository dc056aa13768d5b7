"""Scores of classes as values. Without numpy, as reports read them before they draw."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassScore:
    """One class: scores between 0 and 1, support as the number of samples that truly are of it.

    Runs of earlier versions lack the counts or the areas; these are None then.
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
    """The precision or recall that was asked for (`at`), and what the best threshold gives.

    threshold  None where no threshold reaches what was asked for
    """

    at: float
    threshold: float | None
    precision: float
    recall: float
