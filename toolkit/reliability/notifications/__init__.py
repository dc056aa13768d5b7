"""Notifying a webhook of a run's state: at its end, after a failure, when it is held or continues."""
