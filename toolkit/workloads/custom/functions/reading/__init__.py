"""What a file with three functions says, read from its text."""
