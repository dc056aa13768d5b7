"""The samples of each step, as a pure function."""
