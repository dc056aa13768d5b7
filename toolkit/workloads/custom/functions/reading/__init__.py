"""A file with three functions, read from its text."""
