"""Texts as numbers of tokens, by the tokenizers of pretrained models."""
