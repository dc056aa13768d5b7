"""Free space: choose old checkpoints, logs and set-aside runs, and delete them."""
