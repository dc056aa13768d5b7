"""Capabilities of this cluster and this machine, and advice for jobs."""
