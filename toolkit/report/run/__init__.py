"""One run: its folder as values, its tables and plots, its report."""
