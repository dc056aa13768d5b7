"""A function of the user's as a job: what it is called with, and what it returns."""
