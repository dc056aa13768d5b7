"""The files of mentions and entities, candidates, slices. Imports neither torch nor transformers."""
