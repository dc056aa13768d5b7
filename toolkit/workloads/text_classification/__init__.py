"""Text classification: one label for each text of a table."""
