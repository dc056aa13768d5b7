"""Scores of classifiers, from counts and from ranked probabilities."""
