"""Texts in cells of a CSV file, which a spreadsheet would take for formulas and carry out."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: What Excel, LibreOffice and Google Sheets take for a formula, also behind quotes that were written there.
_FORMULA = re.compile(r"'*[=+\-@\t\r].", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def harmless(cells: Sequence[object]) -> list[object]:
    """A row in which a quote precedes each text that begins a formula: it is then shown as text."""
    return [quoted(cell) if isinstance(cell, str) else cell for cell in cells]


def quoted(text: str) -> str:
    """A text that no spreadsheet takes for a formula; numbers stay. Only the quote is added."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text
