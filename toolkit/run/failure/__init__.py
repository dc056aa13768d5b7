"""Failures: their classes, records, texts and exit status."""
