"""Use a finished run of text classification."""
