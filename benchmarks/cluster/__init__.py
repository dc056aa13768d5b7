"""On the Slurm test cluster: kills, preemptions, several hosts."""
