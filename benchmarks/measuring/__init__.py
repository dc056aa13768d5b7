"""Candidates in turns, each in an interpreter of its own, on a machine that is described."""
