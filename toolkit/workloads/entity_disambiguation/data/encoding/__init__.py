"""Encode mentions and entities as tokens; probabilities of hiding tokens."""
