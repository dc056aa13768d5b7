"""Several machines without a scheduler: their layout, and how their launchers connect and coordinate."""
