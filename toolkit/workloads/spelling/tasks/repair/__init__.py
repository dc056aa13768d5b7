"""The tasks that repair white space."""
