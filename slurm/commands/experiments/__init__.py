"""Commands that take an experiment file, or continue its run."""
