"""Runs on this machine: how many ranks, and with which code."""
