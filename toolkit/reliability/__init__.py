"""What goes wrong in a run: noticing, recording, limiting it."""
