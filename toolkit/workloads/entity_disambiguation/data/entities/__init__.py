"""What a mention and an entity are: files, candidates, slices. Knows neither torch nor transformers."""
