"""Commands about the results of a run, and about repeating it."""
