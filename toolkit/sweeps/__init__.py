"""Many runs of one experiment: which they are, what is kept of them, and how they compare."""
