"""Lines are cut as they arrive. What cannot be text is reported with its line."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.analysis.prediction import source
from toolkit.analysis.prediction.source import TextLines, opened
from toolkit.errors import DataError


def lines_of(*blocks: bytes, encoding: str = "utf-8") -> TextLines:
    """The lines of blocks, each of which is read at once."""
    waiting = [*blocks]
    return TextLines("rows", encoding, lambda: waiting.pop(0) if waiting else b"")


@given(st.text(st.characters(exclude_characters="\0\ufeff", codec="utf-8")), st.integers(1, 7))
def test_blocks_of_any_size_give_the_same_lines(text: str, size: int) -> None:
    raw = text.encode()
    found = [*lines_of(*(raw[at : at + size] for at in range(0, len(raw), size)))]
    assert "".join(found) == text
    assert all(line.endswith("\n") and line.count("\n") == 1 for line in found[:-1])


def test_a_byte_order_mark_is_removed() -> None:
    assert [*lines_of("\ufeffa\n\ufeffb".encode())] == ["a\n", "\ufeffb"]


@pytest.mark.parametrize(
    "blocks, said",
    [
        ((b"a\nb\xff\n",), "rows:2: found the byte 0xff, expected utf-8: convert"),
        (("a\n".encode("utf-16"),), r"rows:1: found the byte 0xff.*begins like utf-16"),
        ((b"a\nb", b"\nc\n\xc3"), "rows:4: found the byte 0xc3"),
        ((b"a\n", b"b\nc\0\n"), "rows:3: found a NUL byte"),
    ],
)
def test_undecodable_bytes_are_reported_with_their_line(blocks: tuple[bytes, ...], said: str) -> None:
    with pytest.raises(DataError, match=said):
        list(lines_of(*blocks))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_text_without_the_byte_order_mark_of_its_encoding_is_refused(encoding: str) -> None:
    with pytest.raises(DataError, match=f"rows:1: .*expected {encoding}"):
        list(lines_of(b"text\nspam\n", b"and eggs\n", encoding=encoding))


def test_an_overlong_line_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "LONGEST", 100)
    endless = TextLines("rows", "utf-8", lambda: b"x" * 10)
    with pytest.raises(DataError, match="rows:1: the line has more than 100 characters"):
        next(endless)


def test_at_most_one_block_is_read_ahead() -> None:
    blocks = iter([b"a\nb\n", b"c\n"])
    read: list[bytes] = []

    def read_one() -> bytes:
        read.append(next(blocks))
        return read[-1]

    lines = TextLines("rows", "utf-8", read_one)
    assert (next(lines), next(lines)) == ("a\n", "b\n")
    assert len(read) == 1


def test_a_pipe_reports_without_blocking_whether_a_line_is_available(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    kept = os.dup(0)
    os.dup2(reading, 0)
    try:
        with opened(None, "utf-8") as lines:
            os.write(writing, b"a\nb")
            assert next(lines) == "a\n"
            assert not lines.are_at_hand()
            os.write(writing, b"\n")
            assert lines.are_at_hand()
            assert next(lines) == "b\n"
            os.close(writing)
            assert lines.are_at_hand()
            assert [*lines] == []
    finally:
        os.dup2(kept, 0)
        os.close(kept)
        os.close(reading)


def test_a_gzip_file_is_read_and_a_truncated_gzip_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(b"a\nb\n"))
    with opened(path, "utf-8") as lines:
        assert [*lines] == ["a\n", "b\n"]
    path.write_bytes(gzip.compress(b"a\nb\n" * 9)[:-5])
    with pytest.raises(DataError, match="not a complete gzip file"), opened(path, "utf-8") as lines:
        list(lines)
