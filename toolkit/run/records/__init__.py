"""Typed records of a run's JSON files."""
