"""Read a file with three functions from its source, without executing it."""
