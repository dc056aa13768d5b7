"""Several machines without a scheduler: which they are, how their launchers connect and act together."""
