"""Predictions with three functions: the predictor, and the result of `predict`."""
