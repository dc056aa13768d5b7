"""What a finished run leaves for people and other programs: predictions, scores, curves, statistics."""
