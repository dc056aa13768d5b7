"""Rows of one file, whatever its format; and its faults, by file and line."""
