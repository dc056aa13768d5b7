"""Read the rows of one file in any supported format, and report its faults by file and line."""
