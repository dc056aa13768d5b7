"""The tables that a data section names: their rows, labels and splits."""
