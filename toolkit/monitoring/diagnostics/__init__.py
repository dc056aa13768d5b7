"""Capabilities of a machine, its GPUs, torch and file systems, each tested in a child process."""
