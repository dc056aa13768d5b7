"""This process and its machine: its rank, control groups, and what is installed."""
