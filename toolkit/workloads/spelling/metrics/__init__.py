"""Scores of spelling: counts that add up, of lines that are read without torch."""
