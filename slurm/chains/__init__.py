"""Runs one after the other: each starts when the one before it has finished."""
