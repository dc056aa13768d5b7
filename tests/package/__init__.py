"""Laws of the whole tree, and what is installed of it."""
