"""Making cells of a CSV file safe that a spreadsheet would execute as formulas."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: Texts that Excel, LibreOffice and Google Sheets treat as formulas, even after quotes.
_FORMULA = re.compile(r"'*[=+\-@\t\r].", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def harmless(cells: Sequence[object]) -> list[object]:
    """Return the row with a quote before each text that begins a formula: it is then shown as text."""
    return [quoted(cell) if isinstance(cell, str) else cell for cell in cells]


def quoted(text: str) -> str:
    """Put a quote before a text that a spreadsheet would treat as a formula, except for numbers."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text
