"""Several runs side by side: their differences, their results, their costs."""
