"""Growing files are read once; what is half written waits, what is damaged is passed over."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm.runs.watching.reading import GrowingLines, last_lines
from toolkit.files import append_json_line, write_atomic


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metrics.jsonl"


def steps(lines: GrowingLines) -> list[int]:
    return [record["step"] for record in lines.look()]


def test_only_new_bytes_are_read(path: Path) -> None:
    path.write_text('{"step": 1}\n{"step": 2}\n')
    lines = GrowingLines(path)
    lines.look()
    with open(path, "r+b") as stream:
        # Were it read again, the first record would be another one.
        stream.write(b'{"step": 7}')
    append_json_line(path, {"step": 3})
    assert steps(lines) == [1, 2, 3]


@pytest.mark.parametrize("damage", ['{"step": ', "[1]", "null", "\x00\x00", "ÿ", "[" * 100_000])
def test_a_damaged_line_is_passed_over(path: Path, damage: str) -> None:
    path.write_text(f'{{"step": 1}}\n{damage}\n{{"step": 2}}\n')
    assert steps(GrowingLines(path)) == [1, 2]


def test_a_file_that_was_replaced_is_read_anew(path: Path) -> None:
    """As by an attempt that goes on from an earlier step."""
    lines = GrowingLines(path)
    write_atomic(path, '{"step": 1, "time": 5}\n{"step": 2, "time": 6}\n')
    assert steps(lines) == [1, 2]
    write_atomic(path, '{"step": 1, "time": 5}\n')
    assert steps(lines) == [1]
    write_atomic(path, '{"step": 1, "time": 5}\n{"step": 3, "time": 9}\n{"step": 4, "time": 9}\n')
    assert steps(lines) == [1, 3, 4]


def test_deleted_file_has_no_records(path: Path) -> None:
    lines = GrowingLines(path)
    append_json_line(path, {"step": 1})
    lines.look()
    path.unlink()
    assert lines.look() == []


@given(st.lists(st.integers(0, 40), max_size=20))
def test_every_record_is_returned_once_however_the_file_grows(cuts: list[int]) -> None:
    raw = b"".join(json.dumps({"step": step}).encode() + b"\n" for step in range(40))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "metrics.jsonl")
        lines = GrowingLines(path)
        for cut in sorted(cuts):
            path.write_bytes(raw[: cut * len(raw) // 40])
            seen = steps(lines)
            assert seen == list(range(len(seen)))
        path.write_bytes(raw)
        assert steps(lines) == list(range(40))


# -- logs


def test_last_lines_are_returned_without_empty_ones(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("one\n\ntwo\n  \nthree\nfour")
    assert last_lines(log, 3) == [b"two", b"three", b"four"]


def test_last_lines_of_a_long_log_are_whole(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("".join(f"line {number:06d}\n" for number in range(10_000)))
    found = last_lines(log, 100_000)
    assert found[-1] == b"line 009999"
    assert all(len(line) == 11 for line in found)
    assert len(found) < 2000


def test_unreadable_log_causes_no_error(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"\xff\xfe\x00one\n")
    assert len(last_lines(tmp_path / "log", 5)) == 1
    assert last_lines(tmp_path / "nowhere", 5) == []
    assert last_lines(tmp_path, 5) == []
