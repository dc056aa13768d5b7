"""Converting texts to token numbers with the tokenizers of pretrained models."""
