"""Training a run: the loop, the objects that it uses, and the stages of a process before and after it."""
