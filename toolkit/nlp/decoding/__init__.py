"""Search for the sequences that a model finds most probable; knows no particular model."""
