"""Telling a webhook how a run stands: at its end, after a failure, when it is held or goes on."""
