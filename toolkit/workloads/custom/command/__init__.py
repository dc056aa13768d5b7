"""A command of the user's as a task: `python train.py`, in as many processes as the job has."""
