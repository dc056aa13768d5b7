"""Training a run: the loop, what it works with, and what a process does before and after it."""
