"""What is added to the command line for what users bring along."""
