"""Logs of a run's attempts and ranks, as they are or as they grow, and failures, for `stk logs`."""
