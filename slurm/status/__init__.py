"""States of runs, from their folders and Slurm, and their display."""
