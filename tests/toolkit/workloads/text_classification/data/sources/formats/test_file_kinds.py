"""The name of a file decides how it is read, or that it is refused."""

from __future__ import annotations

import gzip
import re
from functools import partial
from pathlib import Path

import pytest

from tests.toolkit.workloads.text_classification.data.films import fault, read
from toolkit.data.sources.compressed import unpacked_name
from toolkit.errors import DataError
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data.sources.formats.file_kinds import Format, read_rows
from toolkit.workloads.text_classification.data.sources.formats.table import Row

# Without the time of compression: contents are parts of test names, which all workers must agree on.
packed = partial(gzip.compress, mtime=0)

CSV = b'text,label\n"x, y",a\n'
PACKED = packed(CSV)
ROWS = [Row(2, "x, y", "a")]


@pytest.mark.parametrize(
    "name, content, rows",
    [
        ("a.csv.gz", CSV, ROWS),
        ("a.CSV.GZ", CSV, ROWS),
        ("a.tsv.gz", b'text\tlabel\n"x"\ta\n', [Row(2, '"x"', "a")]),
        ("a.jsonl.gz", b'{"text": "x", "label": "a"}\n', [Row(1, "x", "a")]),
        ("a.ndjson.gz", b'\n{"text": "x", "label": "a"}\n', [Row(2, "x", "a")]),
        ("a.ndjson", b'{"text": "x", "label": "a"}\n', [Row(1, "x", "a")]),
    ],
)
def test_the_ending_before_gz_decides_how_a_compressed_file_is_read(
    tmp_path: Path, name: str, content: bytes, rows: list[Row]
) -> None:
    is_packed = name.lower().endswith(".gz")
    assert read(tmp_path / name, gzip.compress(content) if is_packed else content) == rows


def test_concatenated_gzip_files_are_read_as_one_file(tmp_path: Path) -> None:
    assert read(tmp_path / "a.csv.gz", gzip.compress(CSV[:12]) + gzip.compress(CSV[12:])) == ROWS


def test_any_ending_is_read_if_the_delimiter_is_set(tmp_path: Path) -> None:
    content, data = b"text;label\nx;a\n", TextTable(delimiter=";")
    assert read(tmp_path / "a.txt", content, data) == [Row(2, "x", "a")]
    assert read(tmp_path / "a.txt.gz", gzip.compress(content), data) == [Row(2, "x", "a")]
    assert read(tmp_path / "a.csv.gz", gzip.compress(content), data) == [Row(2, "x", "a")]


@pytest.mark.parametrize(
    "name, content, row, problem",
    [
        ("a.csv", "text,label\nx,a\nbroken\n", Row(2, "x", "a"), r"a\.csv:3: 1 fields"),
        ("a.tsv", "text\tlabel\nx\ta\ny\0\ta\n", Row(2, "x", "a"), r"a\.tsv:3: a NUL byte"),
        (
            "a.jsonl", '{"text": "x", "label": "a"}\nbroken\n', Row(1, "x", "a"),
            r"a\.jsonl:2: not JSON from character 1 on",
        ),
    ],
)  # fmt: skip
def test_rows_before_a_fault_are_read(
    tmp_path: Path, name: str, content: str, row: Row, problem: str
) -> None:
    (tmp_path / name).write_text(content)
    rows = read_rows(tmp_path / name, TextTable())
    assert next(rows) == row
    with pytest.raises(DataError, match=problem):
        next(rows)


OTHERS = ("a.xlsx", "a.feather", "a.json", "a.json.gz", "a.zip", "a.tar.gz", "a.FEATHER")
SUPPORTED = "Supported are .csv, .tsv, .jsonl and .ndjson"


@pytest.mark.parametrize(
    "name, content, told",
    [
        # Not compressed, cut off, overwritten, followed by something.
        *(
            ("a.csv.gz", content, "not a complete gzip file")
            for content in (CSV, PACKED[:-9], PACKED[:12] + b"\xff" * 20, PACKED + b"x")
        ),
        *(("a.csv.gz", empty, " is empty") for empty in (b"", packed(b""))),
        (
            "a.csv.gz",
            packed(CSV + b"caf\xe9,b\n"),
            f":3: not utf-8: found 0xe9 at byte offset {len(CSV) + 3}",
        ),
        ("a.csv", PACKED, "gzip"),
        ("a.csv", b"PK\3\4\xff\xfe", "workbook"),
        ("a.csv", b"PAR1\xff\xfe", "Parquet"),
        ("a.csv", CSV + b"\0", "NUL"),
        *(
            (f"a{ending}", CSV, f"the ending {shown!r} .*{SUPPORTED}.* set data.delimiter")
            for ending, shown in ((".txt", ".txt"), (".txt.gz", ".txt"), (".gz", ".gz"), ("", ""))
        ),
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, name: str, content: bytes, told: str) -> None:
    assert re.search(f"{tmp_path / name}.*{told}", fault(tmp_path / name, content))


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("delimiter", [None, ","])
def test_unsupported_formats_are_refused_with_the_supported_formats(
    tmp_path: Path, name: str, delimiter: str | None
) -> None:
    told = fault(tmp_path / name, b"", TextTable(delimiter=delimiter))
    assert told.startswith(f"{tmp_path / name}: {unpacked_name(Path(name)).suffix.lower()} is not supported")
    assert SUPPORTED in told


@pytest.mark.parametrize("name", ["reviews", "reviews.parquet", "reviews.csv", "reviews.jsonl"])
def test_a_folder_with_any_name_is_refused_with_its_files(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "part.csv").touch()
    with pytest.raises(DataError, match=r"is a folder, expected a file; in it: part\.csv"):
        list(read_rows(tmp_path / name, TextTable()))


def test_the_format_of_a_file_follows_from_its_name_and_the_delimiter() -> None:
    """The names of prepared sets depend on it: if it changed, all sets would be built again."""
    assert Format.of(Path("a.csv.gz"), TextTable()) == Format(delimiter=",", quoted=True)
    assert Format.of(Path("a.tsv"), TextTable()) == Format(delimiter="\t", quoted=False)
    assert Format.of(Path("a.jsonl"), TextTable(delimiter=",")) == Format(delimiter=None, quoted=False)
