"""Reading the rows of a file, whatever its format."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data.sources.file_kinds import Format
from toolkit.workloads.text_classification.data.sources.json_lines import read_json_lines
from toolkit.workloads.text_classification.data.sources.parquet import is_parquet, read_parquet
from toolkit.workloads.text_classification.data.sources.prepared_table import is_database, read_texts
from toolkit.workloads.text_classification.data.sources.table import Row, read_table


def read_rows(path: Path, data: TextTable, part: str | None = None) -> Iterator[Row]:
    """Yield the rows of a file as its name and the config describe it; holds one row at a time.

    part  the split of a prepared set that is wanted; None for all of its texts
    Raises DataError, which names file and line. Texts and labels are not looked at.
    """
    if is_database(path):
        return read_texts(path, part)
    if is_parquet(path) and not path.is_dir():
        return read_parquet(path, data)
    form = Format.of(path, data)
    if form.delimiter is None:
        return read_json_lines(path, data)
    return read_table(path, form.delimiter, form.quoted, data)
