"""What `./scripts/test` runs, in which order, and how it ends: python -m tests.suite."""
