"""A submitter of experiments to Slurm; it never imports torch."""
