"""Predict with a finished run: load its weights, read rows, write predictions."""
