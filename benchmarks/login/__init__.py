"""The cost of commands on the login node, with stubs of Slurm's programs that answer at once."""
