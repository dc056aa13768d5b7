"""Texts as numbers of tokens: tokenizers made here, as JSON files of the tokenizers library."""
