"""Commands that take an experiment file, or go on with its run."""
