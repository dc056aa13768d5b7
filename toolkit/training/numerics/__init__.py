"""What makes results reproducible: random seeds and the settings of the arithmetic."""
