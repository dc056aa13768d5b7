"""Failures of a run: detecting, recording and limiting them."""
