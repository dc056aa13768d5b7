"""Watch runs live: their folders are read every few seconds, and Slurm is queried less often."""
