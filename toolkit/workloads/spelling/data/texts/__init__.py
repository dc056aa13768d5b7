"""Texts and words: files, pieces, features, dictionaries, white space."""
