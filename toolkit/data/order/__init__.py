"""Which samples each step takes, as a pure function."""
