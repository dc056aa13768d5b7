"""The source files of data: found, hashed, cut into splits."""
