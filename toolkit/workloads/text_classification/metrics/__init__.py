"""Scores: of classifiers, of ranked probabilities, of disambiguation; sums first, divided once."""
