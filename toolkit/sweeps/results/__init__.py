"""The results of a sweep: collected from its runs, ranked, as tables, plots and a report."""
