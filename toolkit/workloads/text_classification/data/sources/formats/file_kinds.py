"""The format of a file by its suffix, the rows of a file, and refused formats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from toolkit.data.sources.compressed import unpacked_name
from toolkit.errors import DataError
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data.sources.formats import parquet, prepared_table
from toolkit.workloads.text_classification.data.sources.formats.json_lines import read_json_lines
from toolkit.workloads.text_classification.data.sources.formats.opening import open_problem
from toolkit.workloads.text_classification.data.sources.formats.table import Row, read_table

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_JSON_LINES = (".jsonl", ".ndjson")
#: Suffixes of files in which fields have names instead of a delimiter.
_WITHOUT_DELIMITER = (*_JSON_LINES, prepared_table.ENDING, parquet.ENDING)
#: Suffixes that are refused, with advice.
_OTHERS = {
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".ods"), "save the sheet as .csv"),
    **dict.fromkeys((".feather", ".arrow"), "convert it to .parquet or .csv"),
    **dict.fromkeys(
        (".zip", ".tar", ".tgz", ".bz2", ".xz", ".zst", ".7z"), "unpack it, or compress with gzip"
    ),
    ".json": "write one object per line, in a file with the suffix .jsonl",
}
_SUPPORTED = (
    "Supported are .csv, .tsv, .jsonl and .ndjson, each also compressed (.csv.gz), .parquet, and "
    "samples.sqlite of a prepared set"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """How a line is cut into fields.

    delimiter  None for JSON lines, Parquet and databases
    quoted     whether fields may be quoted
    """

    delimiter: str | None
    quoted: bool

    @classmethod
    def of(cls, path: Path, data: TextTable) -> Format:
        """Return the format by suffix and config. Raises DataError for an unknown or refused format.

        The config's delimiter has no effect on formats without a delimiter: another file may need it.
        """
        ending = unpacked_name(path).suffix.lower()
        if ending in _WITHOUT_DELIMITER:
            return cls(delimiter=None, quoted=False)
        if ending in _OTHERS or (data.delimiter is None and ending not in _DELIMITERS):
            raise _refusal(path, ending)
        delimiter = _DELIMITERS[ending] if data.delimiter is None else data.delimiter
        quoted = data.quoted if data.quoted is not None else delimiter != "\t"
        return cls(delimiter=delimiter, quoted=quoted)


def read_rows(path: Path, data: TextTable, part: str | None = None) -> Iterator[Row]:
    """Yield the rows of a file. Its format follows from its name and the config.

    part  one split of a prepared set; None for all of its texts
    Rows are not all in memory. Raises DataError with file and line. Texts and labels are not checked.
    """
    if prepared_table.is_database(path):
        return prepared_table.read_texts(path, part)
    if parquet.is_parquet(path) and not path.is_dir():
        return parquet.read_parquet(path, data)
    form = Format.of(path, data)
    if form.delimiter is None:
        return read_json_lines(path, data)
    return read_table(path, form.delimiter, form.quoted, data)


def _refusal(path: Path, ending: str) -> DataError:
    if path.is_dir():
        return open_problem(path, IsADirectoryError())
    if ending in _OTHERS:
        return DataError(f"{path}: {ending} is not supported; {_OTHERS[ending]}. {_SUPPORTED}")
    return DataError(
        f"{path}: the ending {ending or path.suffix!r} does not imply a delimiter. {_SUPPORTED}; "
        'for another table in plain text set data.delimiter, for example to "," or "\\t"'
    )
