"""Lines are read as they arrive, complete and in order."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from toolkit.errors import DataError
from toolkit.workloads.spelling.inference.line_io import LINES, Source, blocks, source


def lines_of(path: Path) -> list[str]:
    with source(path) as found:
        return [line for lines, _ in blocks(found) for line in lines]


@pytest.fixture
def pipe() -> Iterator[tuple[Source, int]]:
    reads, writes = os.pipe()
    yield Source(descriptor=reads, name="a pipe", size=None), writes
    os.close(reads)


@drawn(lines=st.lists(st.text(st.characters(exclude_characters="\n\r", codec="utf-8"), max_size=9)))
def test_lines_are_those_of_the_file(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    path = tmp_path_factory.mktemp("lines") / "lines.txt"
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    # A byte order mark is not part of the text.
    expected = [line.removeprefix("\ufeff") if place == 0 else line for place, line in enumerate(lines)]
    assert lines_of(path) == expected


def test_line_ends_are_not_part_of_the_text(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes("\ufeffone\r\n\r\ntwo\x0bthree\nlast".encode())
    assert lines_of(path) == ["one", "", "two\x0bthree", "last"]


def test_a_file_is_read_in_blocks(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"{'word ' * 20}{number}\n" for number in range(3 * LINES)))
    with source(path) as found:
        sizes = [(len(lines), size) for lines, size in blocks(found)]
    assert len(sizes) > 2
    assert max(lines for lines, _ in sizes) < 2 * LINES
    assert (sum(lines for lines, _ in sizes), sum(size for _, size in sizes)) == (
        3 * LINES,
        path.stat().st_size,
    )


def test_a_line_of_a_pipe_is_yielded_before_the_next_line_arrives(pipe: tuple[Source, int]) -> None:
    given, writes = pipe
    found = blocks(given)
    os.write(writes, "the rivér\nov".encode())
    assert next(found)[0] == ["the rivér"]
    os.write(writes, b"er\nthe\n")
    assert next(found)[0] == ["over", "the"]
    os.write(writes, b"end")
    os.close(writes)
    assert next(found)[0] == ["end"]
    assert next(found, None) is None


def test_lines_before_invalid_bytes_are_read_before_the_error(tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes(b"one\ntwo\nthr\xffee\nfour\n")
    with source(path) as found:
        given = blocks(found)
        assert next(given)[0] == ["one", "two"]
        with pytest.raises(DataError, match=r"lines.txt:3: byte 4 is not UTF-8"):
            next(given)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no\.txt cannot be read: No such file"):
        lines_of(tmp_path / "no.txt")
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        lines_of(tmp_path)
