"""Runs watched live: what their folders say every few seconds, and the scheduler now and then."""
