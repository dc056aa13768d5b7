"""Values, folders and strangers that must do no harm."""
