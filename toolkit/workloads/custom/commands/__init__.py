"""Commands for users' own code."""
