"""Sections of an experiment on spelling, and their rules."""
