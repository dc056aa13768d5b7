"""Plots: figures in the colours of a theme, curves over steps."""
