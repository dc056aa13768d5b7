"""Benchmarks of spelling: making them, and scoring the predictions of many models."""
