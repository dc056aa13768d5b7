"""Preparing samples, reading them and putting them into batches."""
