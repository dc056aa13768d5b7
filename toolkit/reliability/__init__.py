"""Errors of a run: noticing, recording and limiting them."""
