"""Mentions and entities as tokens: the text around a mention, the text of an entity, hidden tokens."""
