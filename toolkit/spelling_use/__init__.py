"""Trained models of spelling put to use: lines in, labels or texts out."""
