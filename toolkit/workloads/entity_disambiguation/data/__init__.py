"""What mentions and entities are: their files, their texts as tokens, prepared samples."""
