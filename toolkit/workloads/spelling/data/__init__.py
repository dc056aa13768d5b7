"""Texts with errors: texts and words, noise, prepared samples. Imports no torch."""
