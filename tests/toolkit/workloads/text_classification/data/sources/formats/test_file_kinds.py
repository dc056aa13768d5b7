"""The name of a file says how it is read; what is not read is refused by name."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path

import pytest

from toolkit.data.sources.compressed import unpacked_name
from toolkit.errors import DataError
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data.sources.formats.file_kinds import Format, read_rows
from toolkit.workloads.text_classification.data.sources.formats.table import Row

CSV = b'text,label\n"x, y",a\n'
ROWS = [Row(2, "x, y", "a")]


def read(path: Path, content: bytes, data: TextTable | None = None) -> list[Row]:
    path.write_bytes(content)
    return list(read_rows(path, data or TextTable()))


def fault(path: Path, content: bytes, data: TextTable | None = None) -> str:
    with pytest.raises(DataError) as caught:
        read(path, content, data)
    return str(caught.value)


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
def test_a_compressed_file_is_read_as_the_ending_before_it_says(
    tmp_path: Path, name: str, content: bytes, rows: list[Row]
) -> None:
    is_packed = name.lower().endswith(".gz")
    assert read(tmp_path / name, gzip.compress(content) if is_packed else content) == rows


def test_concatenated_gzip_files_are_read_as_one(tmp_path: Path) -> None:
    assert read(tmp_path / "a.csv.gz", gzip.compress(CSV[:12]) + gzip.compress(CSV[12:])) == ROWS


def test_any_ending_is_read_with_a_delimiter_compressed_or_not(tmp_path: Path) -> None:
    content, data = b"text;label\nx;a\n", TextTable(delimiter=";")
    assert read(tmp_path / "a.txt", content, data) == [Row(2, "x", "a")]
    assert read(tmp_path / "a.txt.gz", gzip.compress(content), data) == [Row(2, "x", "a")]
    assert read(tmp_path / "a.csv.gz", gzip.compress(content), data) == [Row(2, "x", "a")]


def test_rows_of_a_compressed_file_are_streamed(tmp_path: Path) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(CSV + b"broken\n"))
    rows = read_rows(path, TextTable())
    assert next(rows) == ROWS[0]
    with pytest.raises(DataError, match=r"a\.csv\.gz:3: 1 fields"):
        next(rows)


@pytest.mark.parametrize("damage", ["not compressed", "cut off", "overwritten", "followed by something"])
def test_a_file_that_is_not_whole_is_refused(tmp_path: Path, damage: str) -> None:
    packed = gzip.compress(CSV)
    content = {
        "not compressed": CSV,
        "cut off": packed[:-9],
        "overwritten": packed[:12] + b"\xff" * 20,
        "followed by something": packed + b"x",
    }[damage]
    assert f"{tmp_path / 'a.csv.gz'}: not a whole file of gzip" in fault(tmp_path / "a.csv.gz", content)


def test_an_empty_compressed_file_is_told_as_an_empty_one(tmp_path: Path) -> None:
    assert "is empty" in fault(tmp_path / "a.csv.gz", b"")
    assert "is empty" in fault(tmp_path / "a.csv.gz", gzip.compress(b""))


def test_a_missing_compressed_file_is_answered_with_near_names(tmp_path: Path) -> None:
    (tmp_path / "review.csv.gz").touch()
    with pytest.raises(DataError, match=r"no such file\. Did you mean review\.csv\.gz"):
        list(read_rows(tmp_path / "reviews.csv.gz", TextTable()))


def test_undecodable_bytes_are_found_in_what_is_unpacked(tmp_path: Path) -> None:
    told = fault(tmp_path / "a.csv.gz", gzip.compress(CSV + b"caf\xe9,b\n"))
    assert f"{tmp_path / 'a.csv.gz'}:3: not utf-8: found 0xe9 at byte offset {len(CSV) + 3}" in told


@pytest.mark.parametrize(
    "name", ["a.xlsx", "a.feather", "a.json", "a.json.gz", "a.zip", "a.tar.gz", "a.FEATHER"]
)
@pytest.mark.parametrize("delimiter", [None, ","])
def test_other_kinds_are_refused_by_name_with_what_is_read(
    tmp_path: Path, name: str, delimiter: str | None
) -> None:
    told = fault(tmp_path / name, b"", TextTable(delimiter=delimiter))
    ending = unpacked_name(Path(name)).suffix.lower()
    assert f"{tmp_path / name}: {ending} is not read" in told
    assert ".csv, .tsv, .jsonl and .ndjson" in told


@pytest.mark.parametrize(
    "name, ending", [("a.txt", ".txt"), ("a.txt.gz", ".txt"), ("a.gz", ".gz"), ("a", "")]
)
def test_an_ending_that_tells_no_delimiter_is_refused_with_what_is_read(
    tmp_path: Path, name: str, ending: str
) -> None:
    told = fault(tmp_path / name, CSV)
    assert f"the ending {ending!r}" in told
    assert "set data.delimiter" in told
    assert ".csv, .tsv, .jsonl and .ndjson" in told


@pytest.mark.parametrize("name", ["reviews", "reviews.parquet", "reviews.csv", "reviews.jsonl"])
def test_a_folder_is_refused_with_its_files_whatever_its_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "part.csv").touch()
    with pytest.raises(DataError, match=r"is a folder, expected a file; in it: part\.csv"):
        list(read_rows(tmp_path / name, TextTable()))


def workbook() -> bytes:
    """The beginning of one, with a byte that is no UTF-8."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("sheet.xml", b"\xff" * 50)
    return stream.getvalue()


@pytest.mark.parametrize(
    "content, what",
    [
        (gzip.compress(CSV), "gzip"),
        (workbook(), "workbook"),
        (b"PAR1\xff\xfe", "Parquet"),
        (CSV + b"\0", "NUL"),
    ],
    ids=["gzip", "workbook", "Parquet", "NUL"],
)
def test_a_binary_file_with_the_name_of_a_table_is_recognised(
    tmp_path: Path, content: bytes, what: str
) -> None:
    assert what in fault(tmp_path / "a.csv", content)


def test_the_format_of_a_file_follows_from_its_name_and_the_delimiter() -> None:
    """Prepared sets are named by it: if it changed, each would be made again."""
    assert Format.of(Path("a.csv.gz"), TextTable()) == Format(delimiter=",", quoted=True)
    assert Format.of(Path("a.tsv"), TextTable()) == Format(delimiter="\t", quoted=False)
    assert Format.of(Path("a.jsonl"), TextTable(delimiter=",")) == Format(delimiter=None, quoted=False)


def test_an_unpacked_file_has_the_name_without_gz() -> None:
    assert unpacked_name(Path("data/mails.csv.gz")) == Path("data/mails.csv")
    assert unpacked_name(Path("data/mails.csv")) == Path("data/mails.csv")
