"""Checkpoints: whole or not there, copied in the step, written beside training, checked before use."""
