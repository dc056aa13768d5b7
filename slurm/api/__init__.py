"""Runs from Python: what `stk.plan`, `submit`, `run`, `sweep` and `runs` do. Nothing here prints."""
