"""Pieces of a text that are no words, and so are never misspelt: punctuation, numbers, addresses, money."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

Special = Literal["punctuation", "number", "url", "email", "currency"]

#: 12, 1,000.5, 10/12, 10:30, 5-4, 3rd, 1990s; signs and per cent may stand around it.
_NUMBER = re.compile(r"[+\-−]?\d[\d.,:/\-–]*(?:st|nd|rd|th|s)?[%‰]?", re.IGNORECASE)
_EMAIL = re.compile(r"[^\s@]+@[^\s@]+\.[^\s@.]+")
_URL = re.compile(
    r"(?:https?://|ftp://|www\.)\S+|(?:[a-z0-9-]+\.)+(?:com|org|net|edu|gov|int|info|io|de|uk|fr|eu)(?:/\S*)?",
    re.IGNORECASE,
)


def special_of(piece: str) -> Special | None:
    """Return what a piece is that is no word, else None."""
    if is_currency(piece):
        return "currency"
    if is_punctuation(piece):
        return "punctuation"
    if is_number(piece):
        return "number"
    if is_email(piece):
        return "email"
    return "url" if is_url(piece) else None


def is_punctuation(piece: str) -> bool:
    """Whether there is neither letter nor digit."""
    return not any(character.isalnum() for character in piece)


def is_currency(piece: str) -> bool:
    """Whether all characters are signs of currencies."""
    return bool(piece) and all(unicodedata.category(character) == "Sc" for character in piece)


def is_number(piece: str) -> bool:
    """Whether it is a number, date, time, ordinal or decade in digits."""
    return piece.isnumeric() or _NUMBER.fullmatch(piece) is not None


def is_url(piece: str) -> bool:
    """Whether it looks like an address on the web."""
    return _URL.fullmatch(piece) is not None


def is_email(piece: str) -> bool:
    """Whether it looks like an address of e-mail."""
    return _EMAIL.fullmatch(piece) is not None
