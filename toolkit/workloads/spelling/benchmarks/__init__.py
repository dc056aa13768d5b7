"""Benchmarks of spelling: make them, and score the predictions of many models."""
