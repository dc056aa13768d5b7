"""The user's own things: commands, functions, classes."""
