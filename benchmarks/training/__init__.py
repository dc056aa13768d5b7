"""Steps and checkpoints of one training."""
