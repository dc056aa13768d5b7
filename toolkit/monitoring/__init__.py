"""What machines have, and what a run uses of them."""
