"""Checks that find errors of a job before it is queued."""
