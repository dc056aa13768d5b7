"""Characters that a text can have."""

from __future__ import annotations

import re

#: Characters that only an escape in JSON can write.
_NO_CHARACTER = re.compile("[\0\ud800-\udfff]")


def no_character(text: str) -> str:
    """The first NUL or half of a character in a text, as JSON escapes it; empty for a proper text."""
    odd = _NO_CHARACTER.search(text)
    return f"\\u{ord(odd[0]):04x}" if odd else ""
