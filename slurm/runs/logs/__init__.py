"""Logs of a run's attempts and ranks, existing or followed, and failures, for `stk logs`."""
