"""Reproducible results: random seeds and the settings of the arithmetic."""
