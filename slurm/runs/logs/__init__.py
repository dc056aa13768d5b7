"""What `stk logs` shows: the logs of a run's starts and ranks, as they are or as they come, and failures."""
