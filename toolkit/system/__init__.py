"""This process and its machine: its rank, control groups, what is installed, text that is safe to show."""
