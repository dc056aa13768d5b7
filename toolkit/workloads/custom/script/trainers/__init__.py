"""Callbacks that make a Trainer of another library part of the run."""
