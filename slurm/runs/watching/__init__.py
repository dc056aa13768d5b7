"""Runs watched live: their folders are read every few seconds, and the scheduler is asked now and then."""
