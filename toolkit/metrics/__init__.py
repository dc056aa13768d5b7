"""Scores of classifiers: from confusion matrices (sums, divided once) and from ranked probabilities."""

from toolkit.metrics.classification import Classification, ClassScores

__all__ = ["ClassScores", "Classification"]
