"""The interface of a run for a user's training script: `stk.current_run()`."""
