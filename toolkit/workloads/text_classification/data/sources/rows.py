"""Reading the rows of a delimited file or of JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data.sources.file_kinds import Format
from toolkit.workloads.text_classification.data.sources.json_lines import read_json_lines
from toolkit.workloads.text_classification.data.sources.table import Row, read_table


def read_rows(path: Path, data: TextTable) -> Iterator[Row]:
    """Yield the rows of a file as its name and the config describe it; holds one row at a time.

    Raises DataError, which names file and line. Texts and labels are not looked at.
    """
    form = Format.of(path, data)
    if form.delimiter is None:
        return read_json_lines(path, data)
    return read_table(path, form.delimiter, form.quoted, data)
