"""Settings and files that decide the content of a prepared set, and rows that are read twice."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.toolkit.nlp.tokenizers.test_pretrained import bert
from toolkit.errors import DataError
from toolkit.workload import silent
from toolkit.workloads.text_classification.config import TextTable
from toolkit.workloads.text_classification.data.sources import source_files
from toolkit.workloads.text_classification.data.sources.formats.table import Row
from toolkit.workloads.text_classification.data.sources.source_files import Rows, find_sources, one_source

BEFORE, AFTER = [Row(2, "x", "a"), Row(3, "y", "b")], [Row(2, "new", "a")]


def reader(path: Path) -> Callable[[], list[Row]]:
    """Reads the rows of a file again at each call, as a preparation does."""
    data = TextTable(path=str(path))
    source = one_source(data, "test", silent)
    rows = Rows(data, [source])
    return lambda: [*rows.of(source)]


def test_options_of_word_tokenizers_have_no_effect_on_a_pretrained_tokenizer(tmp_path: Path) -> None:
    table = tmp_path / "texts.tsv"
    table.write_text("text\tlabel\na b\tx\n")
    one = TextTable(path=str(table), tokenizer="pretrained", tokenizer_path=bert(tmp_path))
    other = replace(one, lowercase=False, min_count=5)
    assert one.prepared_place(silent) == other.prepared_place(silent)


@pytest.mark.parametrize(
    "kept, rows, second",
    [(1 << 20, 2, BEFORE), (0, 2, AFTER), (1 << 20, 1, AFTER)],
    ids=["few rows", "too many bytes", "too many rows"],
)
def test_the_few_rows_of_a_small_file_are_kept_for_the_second_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int, rows: int, second: list[Row]
) -> None:
    monkeypatch.setattr(source_files, "_KEPT_BYTES", kept)
    monkeypatch.setattr(source_files, "_KEPT_ROWS", rows)
    path = tmp_path / "table.csv"
    path.write_text("text,label\nx,a\ny,b\n")
    read = reader(path)
    assert read() == BEFORE
    path.write_text("text,label\nnew,a\n")
    assert read() == second
    assert read() == AFTER


def test_rows_of_several_files_are_kept_while_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_files, "_KEPT_ROWS", 3)
    paths = [tmp_path / f"{name}.csv" for name in ("one", "two")]
    data = TextTable(train=str(paths[0]), validation=str(paths[1]))
    for path in paths:
        path.write_text("text,label\nx,a\ny,b\n")
    sources = find_sources(data, silent)
    rows = Rows(data, sources)
    assert [[*rows.of(source)] for source in sources] == [BEFORE, BEFORE]
    for path in paths:
        path.write_text("text,label\nnew,a\n")
    assert [[*rows.of(source)] for source in sources] == [BEFORE, AFTER]


def test_a_small_compressed_file_is_read_twice(tmp_path: Path) -> None:
    """Unpacked, it may be larger than memory."""
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress(b"text,label\nx,a\ny,b\n"))
    read = reader(path)
    assert read() == BEFORE
    path.write_bytes(gzip.compress(b"text,label\nnew,a\n"))
    assert read() == AFTER


def test_a_file_that_was_read_only_in_part_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("text,label\nx,a\nbroken\n")
    read = reader(path)
    with pytest.raises(DataError, match="1 fields"):
        read()
    path.write_text("text,label\nx,a\ny,b\n")
    assert read() == BEFORE


@pytest.mark.parametrize("name", ["table.csv.gz", "table.jsonl", "table.jsonl.gz"])
def test_a_prepared_set_depends_on_the_content_of_a_file_and_not_on_its_folder(
    tmp_path: Path, name: str
) -> None:
    def place(folder: str, text: str) -> tuple[Path, str]:
        path = tmp_path / folder / name
        path.parent.mkdir(exist_ok=True)
        rows = f'{{"text": "{text}", "label": "a"}}\n' if "jsonl" in name else f"text,label\n{text},a\n"
        path.write_bytes(gzip.compress(rows.encode(), mtime=0) if name.endswith(".gz") else rows.encode())
        data = TextTable(path=str(path), prepared_dir=str(tmp_path / "prepared"))
        return data.prepared_place(silent)

    first = place("one", "x")
    assert place("other", "x") == first
    assert place("other", "y") != first
