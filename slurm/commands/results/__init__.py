"""Commands about what a run has learnt, and whether it can be repeated."""
