"""A file contains what was written to it, by direct I/O or through the page cache."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from toolkit.checkpoint.writing import direct_io
from toolkit.checkpoint.writing.direct_io import BLOCK, Output

direct = pytest.mark.skipif(not hasattr(os, "O_DIRECT"), reason="this system cannot bypass the cache")


@pytest.fixture
def piece(monkeypatch: pytest.MonkeyPatch) -> memoryview:
    """Memory that begins at a page: four blocks and some bytes; a block is enough to be large."""
    monkeypatch.setattr(direct_io, "LEAST", BLOCK)
    memory = memoryview(mmap.mmap(-1, 5 * BLOCK))
    memory[:] = bytes(n % 251 for n in range(len(memory)))
    return memory[: 4 * BLOCK + 100]


class Spy:
    """Replaces os.write: notes whether each write bypassed the page cache, and fails as told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, refuse: Callable[[bool, int], int | None]) -> None:
        self.ways: list[tuple[str, int]] = []
        self._refuse = refuse
        self._write = os.write
        monkeypatch.setattr(os, "write", self.write)

    def write(self, descriptor: int, data: memoryview) -> int:
        is_direct = bool(fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_DIRECT)
        if number := self._refuse(is_direct, len(self.ways)):
            raise OSError(number, os.strerror(number))
        self.ways.append(("past" if is_direct else "through", len(data)))
        return self._write(descriptor, data)


def write(path: Path, *pieces: memoryview) -> bytes:
    with closing(Output(path)) as file:
        for each in pieces:
            file.write(each)
        file.flush()
    return path.read_bytes()


def test_file_contains_all_pieces(tmp_path: Path, piece: memoryview) -> None:
    whole = piece[: 2 * BLOCK]
    assert write(tmp_path / "file", whole, piece) == bytes(whole) + bytes(piece)
    assert write(tmp_path / "small", piece[:100]) == bytes(piece[:100])
    assert write(tmp_path / "empty", piece[:0]) == b""


def test_unaligned_memory_is_written(tmp_path: Path, piece: memoryview) -> None:
    odd = piece[3 : 3 + 2 * BLOCK]
    assert write(tmp_path / "file", odd) == bytes(odd)


def test_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    with pytest.raises(FileExistsError):
        Output(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "old"


def takes_direct_writes(folder: Path) -> bool:
    """Whether the file system of a folder lets a block past the cache: asked without the code under test."""
    descriptor = -1
    try:
        descriptor = os.open(folder / "probe", os.O_WRONLY | os.O_CREAT | os.O_DIRECT)
        return os.write(descriptor, mmap.mmap(-1, BLOCK)) == BLOCK
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
            raise
        return False
    finally:
        if descriptor >= 0:
            os.close(descriptor)


@direct
def test_whole_blocks_bypass_the_page_cache_and_the_rest_uses_it(
    tmp_path: Path, piece: memoryview, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not takes_direct_writes(tmp_path):
        pytest.skip(f"the file system of {tmp_path} refuses O_DIRECT, so no write can bypass its page cache")
    spy = Spy(monkeypatch, lambda is_direct, count: None)
    assert write(tmp_path / "file", piece[:BLOCK], piece) == bytes(piece[:BLOCK]) + bytes(piece)
    assert spy.ways == [("past", BLOCK), ("past", 4 * BLOCK), ("through", 100)]


@direct
def test_small_file_uses_the_page_cache(
    tmp_path: Path, piece: memoryview, monkeypatch: pytest.MonkeyPatch
) -> None:
    spy = Spy(monkeypatch, lambda is_direct, count: None)
    write(tmp_path / "file", piece[: BLOCK - 1])
    assert spy.ways == [("through", BLOCK - 1)]


@direct
@pytest.mark.parametrize("number", [errno.EINVAL, errno.EFAULT, errno.EOPNOTSUPP])
@pytest.mark.parametrize("after", [0, 1])
def test_write_falls_back_to_the_page_cache_if_direct_io_is_refused(
    tmp_path: Path, piece: memoryview, monkeypatch: pytest.MonkeyPatch, number: int, after: int
) -> None:
    spy = Spy(monkeypatch, lambda is_direct, count: number if is_direct and count >= after else None)
    assert write(tmp_path / "file", piece[:BLOCK], piece) == bytes(piece[:BLOCK]) + bytes(piece)
    assert all(way == "through" for way, _ in spy.ways[after:])


@direct
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_disk_error_raises_without_falling_back_to_the_page_cache(
    tmp_path: Path, piece: memoryview, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    spy = Spy(monkeypatch, lambda is_direct, count: number)
    with pytest.raises(OSError, match=os.strerror(number)):
        write(tmp_path / "file", piece)
    assert spy.ways == []


@direct
def test_error_of_a_write_through_the_page_cache_raises(
    tmp_path: Path, piece: memoryview, monkeypatch: pytest.MonkeyPatch
) -> None:
    Spy(monkeypatch, lambda is_direct, count: errno.EINVAL)
    with pytest.raises(OSError, match=os.strerror(errno.EINVAL)):
        write(tmp_path / "file", piece)
