"""A file holds what was written to it, past the page cache or through it."""

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
    """os.write that notes which way the bytes took, and fails as it is told to."""

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


def test_file_holds_all_pieces(tmp_path: Path, piece: memoryview) -> None:
    whole = piece[: 2 * BLOCK]
    assert write(tmp_path / "file", whole, piece) == bytes(whole) + bytes(piece)
    assert write(tmp_path / "small", piece[:100]) == bytes(piece[:100])
    assert write(tmp_path / "empty", piece[:0]) == b""


def test_memory_that_no_disk_takes_is_written_nevertheless(tmp_path: Path, piece: memoryview) -> None:
    odd = piece[3 : 3 + 2 * BLOCK]
    assert write(tmp_path / "file", odd) == bytes(odd)


def test_file_that_is_there_is_not_touched(tmp_path: Path) -> None:
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
def test_whole_blocks_go_past_the_cache_and_the_rest_through_it(
    tmp_path: Path, piece: memoryview, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not takes_direct_writes(tmp_path):
        pytest.skip("the file system takes no direct writes")
    spy = Spy(monkeypatch, lambda is_direct, count: None)
    assert write(tmp_path / "file", piece[:BLOCK], piece) == bytes(piece[:BLOCK]) + bytes(piece)
    assert spy.ways == [("past", BLOCK), ("past", 4 * BLOCK), ("through", 100)]


@direct
def test_small_file_goes_through_the_cache(
    tmp_path: Path, piece: memoryview, monkeypatch: pytest.MonkeyPatch
) -> None:
    spy = Spy(monkeypatch, lambda is_direct, count: None)
    write(tmp_path / "file", piece[: BLOCK - 1])
    assert spy.ways == [("through", BLOCK - 1)]


@direct
@pytest.mark.parametrize("number", [errno.EINVAL, errno.EFAULT, errno.EOPNOTSUPP])
@pytest.mark.parametrize("after", [0, 1])
def test_file_system_that_refuses_gets_the_rest_through_the_cache(
    tmp_path: Path, piece: memoryview, monkeypatch: pytest.MonkeyPatch, number: int, after: int
) -> None:
    spy = Spy(monkeypatch, lambda is_direct, count: number if is_direct and count >= after else None)
    assert write(tmp_path / "file", piece[:BLOCK], piece) == bytes(piece[:BLOCK]) + bytes(piece)
    assert all(way == "through" for way, _ in spy.ways[after:])


@direct
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_fault_of_the_disk_is_none_of_the_way(
    tmp_path: Path, piece: memoryview, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    spy = Spy(monkeypatch, lambda is_direct, count: number)
    with pytest.raises(OSError, match=os.strerror(number)):
        write(tmp_path / "file", piece)
    assert spy.ways == []


@direct
def test_refusal_through_the_cache_is_a_fault(
    tmp_path: Path, piece: memoryview, monkeypatch: pytest.MonkeyPatch
) -> None:
    Spy(monkeypatch, lambda is_direct, count: errno.EINVAL)
    with pytest.raises(OSError, match=os.strerror(errno.EINVAL)):
        write(tmp_path / "file", piece)
