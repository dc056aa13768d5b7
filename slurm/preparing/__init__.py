"""The preparation of data, here or as a job of its own."""
