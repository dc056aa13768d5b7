"""Logs of a run's starts and ranks, as they are or as they grow, and failures, for `stk logs`."""
