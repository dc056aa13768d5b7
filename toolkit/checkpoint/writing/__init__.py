"""How a checkpoint gets to the disk: staged in memory, written past the page cache, throttled, renamed."""
