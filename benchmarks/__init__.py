"""Benchmarks of this project beside what people use otherwise; `python -m benchmarks` runs them."""
