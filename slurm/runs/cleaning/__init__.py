"""Making room: which old checkpoints, logs and set-aside runs may go, and taking them away."""
