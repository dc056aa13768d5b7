"""Runs as earlier versions have left them, and how they were made."""
