"""Check a plain tree, and build a typed experiment or report all its faults."""
