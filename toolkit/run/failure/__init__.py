"""Failures: what they are called, how they are noticed, and how they are kept from doing more harm."""
