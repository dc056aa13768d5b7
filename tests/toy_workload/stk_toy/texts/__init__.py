"""Labels of short texts."""
