"""A regular package, so that no other one of this common name on the path takes its place."""
