"""What commands print and files show: made safe, short, and written where writing may fail."""
