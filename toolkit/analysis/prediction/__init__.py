"""Predicting with a finished run: its weights opened, rows read, predictions written."""
