"""README, pages and examples."""
