"""What a run took: time, GPUs, memory; as tables, bars and plots."""
