"""The tasks that detect spelling errors."""
