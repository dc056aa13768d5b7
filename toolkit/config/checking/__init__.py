"""From a plain tree to a typed experiment, with all that is wrong with it."""
