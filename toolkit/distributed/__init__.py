"""The processes of a run as one group: joining, sums, devices."""
