"""The files that data are made of: found, hashed, cut into splits."""
