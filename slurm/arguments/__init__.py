"""What the larger commands of `stk` may be told; the others' arguments stand in `slurm.cli`."""
