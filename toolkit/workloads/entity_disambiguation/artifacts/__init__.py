"""Files that a finished run of entity disambiguation leaves."""
