"""The tasks that correct spelling errors."""
