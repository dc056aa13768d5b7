"""Tables are read as configured, or refused with line, problem and advice."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.toolkit.workloads.text_classification.data.films import fault, read
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data.sources.formats.table import Row

FILE_PER_EXAMPLE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)

# All characters of a text file: no NUL, no half of a surrogate pair.
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
TEXTS = st.text(CHARACTERS, max_size=12) | st.text('",\n\r a', max_size=6)
LABELS = TEXTS.filter(str.strip)


@pytest.fixture
def csv_file(tmp_path: Path) -> Path:
    return tmp_path / "reviews.csv"


@pytest.fixture
def tsv_file(tmp_path: Path) -> Path:
    return tmp_path / "reviews.tsv"


@FILE_PER_EXAMPLE
@given(samples=st.lists(st.tuples(TEXTS, LABELS), min_size=1, max_size=6))
def test_all_rows_that_csv_writes_are_read_back(csv_file: Path, samples: list[tuple[str, str]]) -> None:
    stream = io.StringIO()
    csv.writer(stream).writerows([("text", "label"), *samples])
    assert [row[1:] for row in read(csv_file, stream.getvalue())] == samples


@FILE_PER_EXAMPLE
@given(
    samples=st.lists(
        st.tuples(*[st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\t\n\r"))] * 2),
        min_size=1,
    ).filter(lambda samples: all(label.strip() for _, label in samples)),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_all_rows_of_a_tsv_are_read_back_with_their_quotes(
    tsv_file: Path, samples: list[tuple[str, str]], end: str
) -> None:
    content = end.join(f"{text}\t{label}" for text, label in [("text", "label"), *samples])
    assert read(tsv_file, content) == [Row(line, *sample) for line, sample in enumerate(samples, start=2)]


def test_a_row_has_the_number_of_its_first_line(csv_file: Path) -> None:
    rows = read(csv_file, 'text,label\n"two\nlines, and ""quotes""",a\n\nnext,b\n')
    assert rows == [Row(2, 'two\nlines, and "quotes"', "a"), Row(5, "next", "b")]


def test_columns_are_found_by_name_in_any_order(csv_file: Path) -> None:
    data = TextTable(text_column="body", label_column="class")
    assert read(csv_file, "id,class,body\n1,ham,hello\n", data) == [Row(2, "hello", "ham")]


@pytest.mark.parametrize("header", ["text,label", '"text","label"'])
def test_a_byte_order_mark_is_dropped(csv_file: Path, header: str) -> None:
    assert read(csv_file, b"\xef\xbb\xbf" + header.encode() + b"\r\nx,a\r\n") == [Row(2, "x", "a")]


def test_other_encodings_can_be_set(csv_file: Path) -> None:
    content = "text,label\ncafé,a\n"
    for encoding in ("latin-1", "utf-16", "utf-16-le", "cp1252"):
        assert read(csv_file, content.encode(encoding), TextTable(encoding=encoding)) == [Row(2, "café", "a")]


def test_delimiter_and_quoting_can_be_set(tmp_path: Path) -> None:
    content = 'text;label\n"a;b";x\n'
    assert read(tmp_path / "a.txt", content, TextTable(delimiter=";")) == [Row(2, "a;b", "x")]
    told = fault(tmp_path / "b.txt", content, TextTable(delimiter=";", quoted=False))
    assert "b.txt:2: 3 fields, expected 2" in told


def test_fields_of_megabytes_are_read(csv_file: Path) -> None:
    text = "word, " * 400_000
    assert read(csv_file, f'text,label\n"{text}",a\n') == [Row(2, text, "a")]


def test_a_missing_file_is_reported_with_similar_names(csv_file: Path) -> None:
    csv_file.with_name("review.csv").touch()
    assert "no such file. Did you mean review.csv?" in fault(csv_file)


def test_a_missing_file_is_reported_with_the_content_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "notes.md").touch()
    assert f"In {tmp_path} there is: notes.md" in fault(tmp_path / "reviews.csv")
    assert f"only {tmp_path}" in fault(tmp_path / "a" / "b" / "reviews.csv")


def test_a_pipe_is_refused_at_once(csv_file: Path) -> None:
    os.mkfifo(csv_file)
    assert "pipe or a device" in fault(csv_file)


def test_a_file_without_read_permission_is_reported(csv_file: Path, request: pytest.FixtureRequest) -> None:
    csv_file.write_text("text,label\nx,a\n")
    csv_file.chmod(0)
    request.getfixturevalue("ordinary_user")
    assert "you may not read it" in fault(csv_file)


NAMED = {"columns": ("text", "label")}


@pytest.mark.parametrize(
    "content, options, told",
    [
        *((empty, {}, "is empty; expected a line that names") for empty in ("", "\n\n", "\ufeff")),
        ("", NAMED, "is empty; expected one row per sample"),
        *(("text,label\n", {"encoding": name}, f"encoding is {name!r}") for name in ("utf-99", "hex", "")),
        ("Text,class,id\nx,a,1\n", {}, "no column 'text' and 'label', found: Text, class, id. Set data."),
        # No name is suggested for a header that is cut wrongly.
        (
            "text;label\nx;a\n",
            {},
            "delimiter right? Set data.text_column and data.label_column to a column's name; ",
        ),
        ("text,text,label\nx,y,a\n", {}, "2 columns are named 'text'"),
        ("fine,1\n", {"columns": ("text", "class")}, "data.columns: no column 'label', found: text, class"),
        ("text,label\nfine,1\n", NAMED, "reviews.csv:1: the line names the columns itself, so leave data."),
        ("fine,1\ndull\n", NAMED, "reviews.csv:2: 1 fields, expected 2 as in data.columns (text, label)"),
        ('text,label\n"a" b,x\n', {}, "reviews.csv:2: in the row that begins here, text follows"),
        (b"text,label\n\xc3", {}, "byte offset 11"),
        ("text,label\nx,a\n".encode("utf-16"), {}, "it begins like utf-16"),
    ],
)
def test_a_faulty_table_is_refused(
    csv_file: Path, content: bytes | str, options: dict[str, Any], told: str
) -> None:
    assert told in fault(csv_file, content, TextTable(**options))


@pytest.mark.parametrize("rows", [0, 1, 50_000])
def test_invalid_bytes_are_reported_with_line_and_offset(csv_file: Path, rows: int) -> None:
    before = b"text,label\n" + "ünd,a\n".encode() * rows
    told = fault(csv_file, before + b"caf\xe9 au lait,b\n" + b"z,c\n" * 1000)
    assert f"{csv_file}:{rows + 2}: not utf-8: found 0xe9 at byte offset {len(before) + 3}" in told
    assert "Set data.encoding" in told


def test_columns_can_be_named_for_a_file_without_a_header(tsv_file: Path) -> None:
    data = TextTable(columns=("text", "label"))
    assert read(tsv_file, "fine\t1\ndull\t0\n", data) == [Row(1, "fine", "1"), Row(2, "dull", "0")]
    swapped = TextTable(columns=("label", "id", "text"))
    assert read(tsv_file, "1\t7\tfine\n", swapped) == [Row(1, "fine", "1")]


def test_files_in_the_root_folder_are_not_suggested() -> None:
    told = fault(Path("/no_such_file_here.tsv"))
    assert "no such file" in told
    assert all(f" {entry.name}," not in told for entry in Path("/").iterdir())
