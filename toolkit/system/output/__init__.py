"""Output of commands and content of files: made safe and short, and written although writing may fail."""
