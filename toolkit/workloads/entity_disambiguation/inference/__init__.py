"""Using a finished run: what it keeps of its data, and its predictions for new sentences."""
