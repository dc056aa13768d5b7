"""A workload of somebody else: a line through points. The toolkit does not know it."""
