"""Measure candidates in turns, each in a separate interpreter, and describe the machine."""
