"""Commands about the states of runs, and actions on runs."""
