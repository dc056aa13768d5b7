"""The only package that starts Slurm's programs; it parses their output."""
