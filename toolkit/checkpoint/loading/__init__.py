"""Selecting a checkpoint, and loading it into all ranks."""
