"""Spelling: detection, correction and repair of white space."""
