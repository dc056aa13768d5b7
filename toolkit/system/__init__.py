"""This process and its machine: rank, control groups, GPUs, and installed distributions."""
