"""The report sections of text classification."""
