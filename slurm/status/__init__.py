"""States of runs from their folders and the scheduler, and their display."""
