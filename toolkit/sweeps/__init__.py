"""Many runs of one experiment: their parameters, their folder, and their results."""
