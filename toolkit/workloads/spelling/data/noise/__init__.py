"""Noise: puts errors into clean texts."""
