"""Checks of an experiment before its job waits in a queue."""
