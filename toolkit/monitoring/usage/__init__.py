"""A run's use of its machines: memory, processors, GPUs."""
