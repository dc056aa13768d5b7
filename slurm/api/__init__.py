"""Runs from Python: `stk.plan`, `submit`, `run`, `sweep` and `runs`. Nothing here prints."""
