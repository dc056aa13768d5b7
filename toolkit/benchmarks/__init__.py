"""Folders of benchmarks of spelling: inputs, what is right, predictions of many models; their scores."""
