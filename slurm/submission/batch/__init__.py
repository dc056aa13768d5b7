"""The batch script of a run, as a value: its options, its lines, its quoting."""
