"""The checks of `stk doctor`: each yields findings."""
