"""Using a finished run of text classification."""
