"""The only package that starts Slurm's programs, and what their answers mean."""
