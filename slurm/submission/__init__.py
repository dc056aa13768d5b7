"""From an experiment to a job in the queue."""
