"""Use trained models on lines of text; the results are labels or texts."""
