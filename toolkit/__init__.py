"""A training library that does not depend on Slurm."""
