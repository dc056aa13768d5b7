"""Pieces of a text that are not words: punctuation, numbers, addresses, currency signs."""

from __future__ import annotations

import re
import string
import unicodedata

#: 12, 1,000.5, 10/12, 10:30, 5-4, 3rd, 1990s; also with a sign before or a per cent sign after the number.
_NUMBER = re.compile(r"[+\-−]?\d[\d.,:/\-–]*(?:st|nd|rd|th|s)?[%‰]?", re.IGNORECASE)
_EMAIL = re.compile(r"[^\s@]+@[^\s@]+\.[^\s@.]+")
_URL = re.compile(
    r"(?:https?://|ftp://|www\.)\S+|(?:[a-z0-9-]+\.)+(?:com|org|net|edu|gov|int|info|io|de|uk|fr|eu)(?:/\S*)?",
    re.IGNORECASE,
)


def is_special(piece: str) -> bool:
    """Whether a piece is not a word, and so is never misspelt."""
    kinds = (is_currency, is_punctuation, is_number, is_email, is_url)
    return any(is_kind(piece) for is_kind in kinds)


def is_punctuation(piece: str) -> bool:
    """Whether a piece has no letters and no digits."""
    return not any(character.isalnum() for character in piece)


def is_ascii_punctuation(piece: str) -> bool:
    """Whether all characters are ASCII punctuation."""
    return all(character in string.punctuation for character in piece)


def is_currency(piece: str) -> bool:
    """Whether all characters are currency signs."""
    return bool(piece) and all(unicodedata.category(character) == "Sc" for character in piece)


def is_number(piece: str) -> bool:
    """Whether a piece is a number, date, time, ordinal or decade in digits."""
    return piece.isnumeric() or _NUMBER.fullmatch(piece) is not None


def is_url(piece: str) -> bool:
    """Whether a piece looks like a web address."""
    return _URL.fullmatch(piece) is not None


def is_email(piece: str) -> bool:
    """Whether a piece looks like an e-mail address."""
    return _EMAIL.fullmatch(piece) is not None
