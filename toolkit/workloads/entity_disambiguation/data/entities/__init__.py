"""Mentions and entities: files, candidates, slices. Knows neither torch nor transformers."""
