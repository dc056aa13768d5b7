"""Report sections of text classification."""
