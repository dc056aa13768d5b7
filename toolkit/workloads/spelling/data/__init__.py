"""What texts with errors are: texts and words, noise, prepared samples. Imports no torch."""
