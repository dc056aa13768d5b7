"""What can be learnt: one module per task, found through the table in `toolkit.config.kinds`."""
