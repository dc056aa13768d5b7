"""A guess at the encoding of bytes that are invalid in the expected one."""

from __future__ import annotations

import codecs


def guess(start: bytes) -> str:
    """Return a remark about a file that begins with these bytes, in brackets."""
    if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return " (it begins like utf-16)"
    return " (files from Windows are often cp1252, older ones latin-1)"
