"""Machines without Slurm, joined by the same command typed on each: two network namespaces."""
