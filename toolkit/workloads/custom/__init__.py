"""The workload for users' own code: commands, functions and classes."""
