"""What to ask the scheduler for the next time, from what a run asked for and what it used."""
