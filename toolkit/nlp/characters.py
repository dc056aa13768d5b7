"""Characters that a valid text cannot have."""

from __future__ import annotations

import re

#: Characters that only an escape in JSON can write.
_NO_CHARACTER = re.compile("[\0\ud800-\udfff]")


def no_character(text: str) -> str:
    """The first NUL or lone surrogate in a text, as a JSON escape; empty without one."""
    odd = _NO_CHARACTER.search(text)
    return f"\\u{ord(odd[0]):04x}" if odd else ""
