"""Use a finished run: the data that it keeps, and predictions for new sentences."""
