"""The batch script of a run: its options, its lines, its quoting."""
