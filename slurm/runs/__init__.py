"""What is shown of runs, what a person may do to them, and what follows from what they left."""
