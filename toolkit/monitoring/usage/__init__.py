"""What a run takes of its machines: memory, processors, GPUs."""
