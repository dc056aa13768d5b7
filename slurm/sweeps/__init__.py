"""Many runs of one experiment as job arrays."""
