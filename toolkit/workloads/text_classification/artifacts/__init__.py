"""The files of a finished run for users and other programs: predictions, scores, curves, statistics."""
