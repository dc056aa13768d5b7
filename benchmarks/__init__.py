"""Benchmarks of this project and of other tools; `python -m benchmarks` runs them."""
