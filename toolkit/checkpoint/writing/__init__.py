"""Writing a checkpoint to the disk: staged in memory, past the page cache, throttled, renamed."""
