"""Read the rows of one file in any supported format, and report its errors by file and line."""
