"""Runs that are preempted, killed, out of time, or lose a host."""
