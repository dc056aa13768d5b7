"""A script that repeats a run from its folder."""
