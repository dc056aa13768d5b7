"""Logs are read in blocks, from their end if wanted."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurm.runs.logs import lines
from slurm.runs.logs.lines import Tail, read_lines, tail_start
from toolkit.system.output.sanitize import log_line


@pytest.fixture(params=[3, 1 << 16])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """A small block puts its borders everywhere."""
    monkeypatch.setattr(lines, "_BLOCK", request.param)
    return int(request.param)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 9])
@pytest.mark.parametrize("text", ["", "one", "one\n", "one\ntwo", "one\n\nthree\n", "a\nb\nc\nd\n", "\n\n\n"])
def test_the_last_lines_are_found_from_the_end(tmp_path: Path, block: int, text: str, count: int) -> None:
    path = tmp_path / "log"
    path.write_text(text)
    expected = "".join(text.splitlines(keepends=True)[-count:])
    assert text[tail_start(path, count) :] == expected


def test_only_the_end_of_a_large_log_is_read(tmp_path: Path) -> None:
    """A sparse file of a terabyte: reading it from the beginning would take hours."""
    path = tmp_path / "log"
    with open(path, "wb") as stream:
        stream.truncate(1 << 40)
        stream.seek(0, 2)
        stream.write(b"\nlast but one\nlast\n")
    assert list(read_lines(path, tail_start(path, 2))) == [b"last but one\n", b"last\n"]


def test_very_long_line_is_read_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * 200_000)
    pieces = list(read_lines(path))
    assert len(pieces) == 4
    assert b"".join(pieces) == path.read_bytes()


@pytest.fixture(params=range(12, 24))
def bar(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A progress bar of several blocks, with the block's border at each place of it."""
    monkeypatch.setattr(lines, "_BLOCK", request.param)
    path = tmp_path / "log"
    path.write_text("".join(["start\n", *(f"\r{done:3}%|█" for done in range(101)), "\nlast\n"]))
    return path


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_long_progress_bar_is_one_line_with_its_last_state(bar: Path, end: bytes) -> None:
    bar.write_bytes(bar.read_bytes().replace(b"\n", end))
    assert [*map(log_line, read_lines(bar))] == ["start", "100%|█", "last"]
    assert [*map(log_line, read_lines(bar, tail_start(bar, 2)))] == ["100%|█", "last"]


def test_long_lines_without_a_bar_lose_nothing(bar: Path) -> None:
    bar.write_bytes(b"".join(b"x" * length + b"\r\n" for length in range(1, 50)))
    assert b"".join(read_lines(bar)) == bar.read_bytes()


# -- a log that grows


def test_each_look_at_a_long_progress_bar_shows_whole_states(bar: Path) -> None:
    whole = bar.read_bytes()
    bar.write_bytes(b"")
    tail = Tail(bar)
    seen: list[str] = []
    for start in range(0, len(whole), 50):
        with bar.open("ab") as stream:
            stream.write(whole[start : start + 50])
        seen += map(log_line, tail.look())
    assert (seen[0], seen[-1]) == ("start", "last")
    states = [int(state.removesuffix("%|█")) for state in seen[1:-1]]
    assert states == sorted({*states})
    assert states[-1] == 100


def test_each_look_returns_only_new_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    tail = Tail(path)
    assert list(tail.look()) == []
    path.write_text("one\n")
    assert list(tail.look()) == [b"one\n"]
    assert list(tail.look()) == []
    with path.open("a") as stream:
        stream.write("two\nthr")
    assert list(tail.look()) == [b"two\n"]
    with path.open("a") as stream:
        stream.write("ee\n")
    assert list(tail.look()) == [b"three\n"]


def test_a_log_that_was_emptied_is_read_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("a long line\n")
    tail = Tail(path)
    assert list(tail.look()) == [b"a long line\n"]
    path.write_text("new\n")
    assert list(tail.look()) == [b"new\n"]
