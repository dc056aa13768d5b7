"""Prepare mentions and entities: their files, their texts as tokens, samples."""
