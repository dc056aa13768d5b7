"""Failures: their classes, how they are noticed, and how they are kept from doing more harm."""
