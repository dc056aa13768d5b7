"""The interface of a run for the user's own training script: `stk.current_run()`."""
