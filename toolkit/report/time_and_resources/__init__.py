"""Time, GPUs and memory of a run, as tables, bars and plots."""
