"""Networks. They do not depend on ranks, run folders or tasks."""
