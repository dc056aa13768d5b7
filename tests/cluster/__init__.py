"""A real Slurm cluster of four hosts inside one machine, for the tests and to play with by hand."""
