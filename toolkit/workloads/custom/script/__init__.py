"""What the user's own training script may ask of the run that it is part of: `stk.current_run()`."""
