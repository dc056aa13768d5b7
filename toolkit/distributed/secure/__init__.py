"""Authentication between the processes of a run: a shared secret, and authenticated connections."""
