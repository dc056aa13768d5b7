"""Scores of a choice among candidates."""
