"""A training library that has never heard of Slurm."""
