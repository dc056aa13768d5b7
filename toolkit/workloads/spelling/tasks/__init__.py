"""The tasks, found through the specifications in `workload.py`."""
