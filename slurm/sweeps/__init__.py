"""Many runs of one experiment as one job array."""
