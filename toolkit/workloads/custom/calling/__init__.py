"""A user's function as a job: its arguments and its result."""
