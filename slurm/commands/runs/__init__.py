"""Commands about the states of runs, and actions of a person on them."""
