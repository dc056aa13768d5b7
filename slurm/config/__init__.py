"""The section `resources` of an experiment: its keys, what must hold between them, what they ask for."""
