"""Several runs side by side: what differs between them, what came out, what it took."""
