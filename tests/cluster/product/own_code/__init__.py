"""Runs of a user's own commands, scripts and functions."""
