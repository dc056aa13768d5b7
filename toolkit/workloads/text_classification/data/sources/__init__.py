"""The tables of a data section: their rows, labels and splits."""
