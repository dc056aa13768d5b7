"""Prepared sets: folders that are built once, and then mapped into memory."""
