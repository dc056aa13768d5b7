"""Make, save and load tokenizers of texts with errors: JSON files of the tokenizers library."""
