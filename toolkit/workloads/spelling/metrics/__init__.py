"""Scores of spelling: counts that add up, computed from lines without torch."""
