"""Files of a finished run for people and other programs: predictions, scores, curves, statistics."""
