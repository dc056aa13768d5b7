"""Predictions of three functions: which runs can, and what `predict` returns."""
