"""The copy of the code that a run keeps, and the code that differs from it."""
