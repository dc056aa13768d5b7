"""The section `resources` of an experiment: its keys, their rules, and the number of processes."""
