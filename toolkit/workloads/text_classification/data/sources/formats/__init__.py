"""Rows of one file, whatever its format; and what is wrong with it, by file and line."""
