"""A run's folder: its paths, how it is made, and the records in it."""
