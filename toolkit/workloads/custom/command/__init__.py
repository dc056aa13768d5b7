"""A user's command as a task: `python train.py`, in one process per rank or per host."""
