"""Read Parquet files, with the package pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from toolkit.errors import DataError
from toolkit.registry import extra_with
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data.sources.formats.opening import open_problem
from toolkit.workloads.text_classification.data.sources.formats.table import Row, column_places

ENDING = ".parquet"

_ROWS_AT_A_TIME = 4096


def is_parquet(path: Path) -> bool:
    """Whether the file is a Parquet file, by its name."""
    return path.suffix.lower() == ENDING


def read_parquet(path: Path, data: TextTable) -> Iterator[Row]:
    """Yield the rows of a file; some thousands are in memory. The line of a row is its number, from 1.

    A missing value is an empty field; a number is converted to text with Python's str.
    Raises DataError with file and row if the file is missing, empty or unreadable, if a column is missing, if
    a value is neither a text nor a number, or if pyarrow is not installed.
    """
    file = _opened(path)
    header = list(file.schema_arrow.names)
    columns = [header[at] for at in column_places(str(path), header, data)]
    if not file.metadata.num_rows:
        raise DataError(f"{path} has no rows; expected one for each sample")
    for number, row in enumerate(_rows(path, file, columns), start=1):
        text, label = (_field(path, number, *each) for each in zip(columns, row, strict=True))
        yield Row(number, text, label)


def _rows(path: Path, file: Any, columns: list[str]) -> Iterator[tuple[object, ...]]:
    try:
        for batch in file.iter_batches(_ROWS_AT_A_TIME, columns=list(dict.fromkeys(columns))):
            yield from zip(*(batch.column(name).to_pylist() for name in columns), strict=True)
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: damaged: {error}") from error


def unpacked_size(path: Path, data: TextTable) -> int:
    """The unpacked size of the two columns of a file in bytes. Raises DataError."""
    meta = _opened(path).metadata
    wanted = {data.text_column, data.label_column}
    groups = (meta.row_group(number) for number in range(meta.num_row_groups))
    chunks = (group.column(number) for group in groups for number in range(group.num_columns))
    return sum(chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema in wanted)


def _opened(path: Path) -> Any:
    try:
        # Imported here, because that takes a tenth of a second.
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        cure = extra_with("pyarrow") or "pyarrow"
        raise DataError(f"{path}: the package pyarrow is needed to read it: pip install '{cure}'") from error
    try:
        return ParquetFile(path)
    except OSError as error:
        raise open_problem(path, error) from error
    except ValueError as error:
        raise DataError(f"{path}: not a complete Parquet file: {error}") from error


def _field(path: Path, number: int, column: str, value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    kind = type(value).__name__
    raise DataError(f"{path}: row {number}: {column!r} is of type {kind}, expected a text or a number")
