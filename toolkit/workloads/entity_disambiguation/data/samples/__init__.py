"""The prepared set of mentions: built once per content and settings, then mapped into memory."""
