"""How an alias is spelt where it is looked up."""

from __future__ import annotations

import unicodedata


def normalise(text: str) -> str:
    """Return the key of an alias: letters, digits and spaces, without accents, in lower case.

    Canonical decomposition (NFD) first, so that an accent is a character of its own, which goes.
    """
    kept = (each for each in unicodedata.normalize("NFD", text) if each.isalnum() or each == " ")
    return "".join(kept).lower().strip()
