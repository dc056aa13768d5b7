"""Prepare tables of texts: from files to samples in memory maps. Imports no torch."""
