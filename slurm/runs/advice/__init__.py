"""Advice on the next request, from a run's request and use."""
