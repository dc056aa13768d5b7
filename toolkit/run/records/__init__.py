"""Typed records of the JSON that a run writes down."""
