"""Compose an experiment file to one plain tree: YAML, includes, overrides, references."""
