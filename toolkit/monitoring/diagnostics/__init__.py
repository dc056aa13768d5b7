"""Capabilities of a machine, its GPUs, its torch and its file systems, each tested in a child process."""
