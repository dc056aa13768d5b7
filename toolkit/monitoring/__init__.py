"""Properties of machines, and a run's use of them."""
