"""Noise: what puts errors into clean texts."""
