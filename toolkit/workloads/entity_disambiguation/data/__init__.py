"""Mentions and entities: their files, their texts as tokens, prepared samples."""
