"""Checkpoints: complete or absent, copied between steps, written during training, verified before use."""
