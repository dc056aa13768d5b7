"""What rank 0 writes and shows during training: metrics files and progress."""
