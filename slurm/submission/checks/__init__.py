"""Errors of a job, as far as they are known before it is queued."""
