"""The texts of a CSV file as they were before a spreadsheet was kept from carrying them out."""

from __future__ import annotations

from toolkit.system.output.csv_cells import quoted


def unquoted(cell: str) -> str:
    """The text of which `quoted` made a cell."""
    text = cell.removeprefix("'")
    return text if quoted(text) == cell else cell
