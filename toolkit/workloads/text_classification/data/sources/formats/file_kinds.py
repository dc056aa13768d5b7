"""The format of a file, by the ending of its name, and its rows; the formats that are refused."""

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
#: Files in which each row names its fields.
_WITHOUT_DELIMITER = (*_JSON_LINES, prepared_table.ENDING, parquet.ENDING)
#: Endings that are refused, and what to do with such a file.
_OTHERS = {
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".ods"), "save the sheet as .csv"),
    **dict.fromkeys((".feather", ".arrow"), "convert it to .parquet or .csv"),
    **dict.fromkeys(
        (".zip", ".tar", ".tgz", ".bz2", ".xz", ".zst", ".7z"), "unpack it, or compress with gzip"
    ),
    ".json": "write each object into a line of its own, in a file that ends with .jsonl",
}
_READ = (
    "Read are .csv, .tsv, .jsonl and .ndjson, each also compressed (.csv.gz), .parquet, and samples.sqlite "
    "of a prepared set"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """The separation of a line into fields.

    delimiter  None where each line is a JSON object, and for Parquet and databases
    """

    delimiter: str | None
    quoted: bool

    @classmethod
    def of(cls, path: Path, data: TextTable) -> Format:
        """The format by the file's ending and the config. Raises DataError if neither gives it.

        The config's delimiter does not apply to such files: another file of the section may
        need it.
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
    """Yield the rows of a file as its name and the config describe it; holds one row at a time.

    part  the split of a prepared set that is wanted; None for all of its texts
    Raises DataError, which names file and line. Texts and labels are not looked at.
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
        return DataError(f"{path}: {ending} is not read; {_OTHERS[ending]}. {_READ}")
    return DataError(
        f"{path}: the ending {ending or path.suffix!r} does not tell what separates the fields. {_READ}; "
        'for another table in plain text set data.delimiter, for example to "," or "\\t"'
    )
