"""Predictions with three functions: which runs can predict, and the result of `predict`."""
