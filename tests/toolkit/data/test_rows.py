"""Rows are read twice; those of small files are in memory the second time."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.config.kinds import TextTable
from toolkit.data import rows
from toolkit.data.rows import Rows
from toolkit.data.sources import one_source
from toolkit.data.table import Row
from toolkit.errors import DataError

BEFORE, AFTER = [Row(2, "x", "a"), Row(3, "y", "b")], [Row(2, "new", "a")]


@pytest.mark.parametrize("kept, second", [(1 << 20, BEFORE), (0, AFTER)])
def test_a_small_file_is_kept_for_the_second_reading_and_a_large_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int, second: list[Row]
) -> None:
    monkeypatch.setattr(rows, "_KEPT_BYTES", kept)
    path = tmp_path / "table.csv"
    path.write_text("text,label\nx,a\ny,b\n")
    data = TextTable(path=str(path))
    source = one_source(data, "test", lambda *_: None)
    found = Rows(data, [source])
    assert [*found.of(source)] == BEFORE
    path.write_text("text,label\nnew,a\n")
    assert [*found.of(source)] == second
    assert [*found.of(source)] == AFTER


def test_a_file_that_was_read_in_part_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("text,label\nx,a\nbroken\n")
    data = TextTable(path=str(path))
    source = one_source(data, "test", lambda *_: None)
    found = Rows(data, [source])
    with pytest.raises(DataError, match="1 fields"):
        [*found.of(source)]
    path.write_text("text,label\nx,a\ny,b\n")
    assert [*found.of(source)] == BEFORE
