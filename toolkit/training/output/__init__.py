"""Output of rank 0 during training: metrics files and progress."""
