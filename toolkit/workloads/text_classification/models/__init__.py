"""Networks. They know nothing of ranks, files or tasks."""
