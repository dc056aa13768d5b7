"""Tokenizers of texts with errors: made, saved, loaded; JSON files of the tokenizers library."""
