"""The numbers of a report as CSV, for a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from toolkit.report.blocks import Document, Numbers
from toolkit.report.formats import file_name
from toolkit.system.output.csv_cells import harmless


def spreadsheets(document: Document) -> dict[str, str]:
    """Return the texts of all tables of numbers by file name."""
    found = (block for block in document.blocks() if isinstance(block, Numbers))
    return {file_name(f"{numbers.name}.csv"): csv_text(numbers.head, numbers.rows) for numbers in found}


def csv_text(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as CSV; None is an empty cell, and no text is read as a formula."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(harmless(head))
    writer.writerows(map(harmless, rows))
    return stream.getvalue()
