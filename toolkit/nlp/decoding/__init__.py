"""Search for the most probable sequences of any model."""
