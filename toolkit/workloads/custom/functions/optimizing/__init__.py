"""Optimizers and learning rates that functions of the user make."""
