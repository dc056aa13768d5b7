"""Use trained models on lines of text: labels or texts out."""
