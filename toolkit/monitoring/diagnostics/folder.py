"""Capabilities of a folder's file system, found by trying. No trial takes longer than a few seconds.

Everything happens in a temporary hidden folder, which is removed at the end, also after SIGTERM.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import re
import shutil
import statistics
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from toolkit.files import temporary_folder

#: Prefix of the hidden folders, so that leftovers of a killed process can be recognised.
PREFIX = ".stk-doctor."

_MB = 1 << 20
_BLOCK = 4 * _MB
#: How much is written and read back, at most, and for how long.
_BYTES = 96 * _MB
_LONGEST_S = 4.0
_SYNCS = 15
#: Free space needed, as a multiple of what is written: a probe must not fill a disk.
_ROOM = 4


def folder(path: Path, *, tries: bool = True) -> dict[str, Any]:
    """The file system of a folder as JSON, with the results of trying it out if it can be written.

    If the folder does not exist yet, its nearest existing parent is used instead.
    """
    there = nearest(path)
    facts: dict[str, Any] = {"path": str(path), "is_there": there == path, "tried": None}
    try:
        facts |= {**mount(there), **_room(there), "device": os.stat(there).st_dev}
    except OSError as error:
        return {**facts, "why": str(error)}
    facts["is_writable"] = os.access(there, os.W_OK | os.X_OK)
    if tries and facts["is_writable"]:
        facts["tried"] = _try_out(there)
    return facts


def nearest(path: Path) -> Path:
    """The folder, or its nearest existing parent."""
    return next((each for each in (path, *path.parents) if each.is_dir()), Path("/"))


def _room(path: Path) -> dict[str, Any]:
    """Free space for this user, and free inodes where the file system counts them."""
    stat = os.statvfs(path)
    return {
        "free_mb": stat.f_bavail * stat.f_frsize // _MB,
        "total_mb": stat.f_blocks * stat.f_frsize // _MB,
        "free_files": stat.f_favail if stat.f_files else None,
    }


# -- where it is mounted


def mount(path: Path, table: Path = Path("/proc/self/mounts")) -> dict[str, Any]:
    """Kind, source and options of the file system of a folder; the last one if several are mounted there."""
    found: dict[str, Any] = {"kind": None, "source": None, "options": [], "mounted_at": None}
    path = path.resolve()
    with suppress(OSError):
        text = table.read_text(encoding="utf-8", errors="surrogateescape")
        for line in text.splitlines():
            words = [_unescape(word) for word in line.split(" ")]
            if len(words) >= 4 and _is_below(path, Path(words[1]), found["mounted_at"]):
                found = {
                    "kind": words[2],
                    "source": words[0],
                    "options": words[3].split(","),
                    "mounted_at": words[1],
                }
    return found


def _is_below(path: Path, point: Path, best: str | None) -> bool:
    return path.is_relative_to(point) and (best is None or len(point.parts) >= len(Path(best).parts))


def _unescape(word: str) -> str:
    """Decode octal escapes, such as those of blanks."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), word)


# -- what it does with files


def _try_out(parent: Path) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    try:
        with temporary_folder(PREFIX, parent) as place:
            for name, attempt in _ATTEMPTS.items():
                facts[name] = _answer(attempt, place)
    except OSError as error:
        facts["why"] = str(error)
    return facts


def _answer(attempt: Callable[[Path], Any], place: Path) -> Any:
    """Return the result of an attempt, or its error, as {"error": …}."""
    try:
        return attempt(place)
    except OSError as error:
        return {"error": error.strerror or str(error)}


def _renames_over(place: Path) -> bool:
    """Whether a rename replaces a file at once, while open readers still read the old file."""
    old, new = place / "kept", place / "new"
    old.write_text("old")
    new.write_text("new")
    with open(old, encoding="utf-8") as reader:
        os.replace(new, old)
        return reader.read() == "old" and old.read_text() == "new" and not new.exists()


def _creates_once(place: Path) -> bool:
    """Whether exclusive creation of an existing file fails."""
    path = place / "once"
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        return True
    return False


def _links(place: Path) -> bool:
    """Whether a hard link makes a second name, and fails for an existing name."""
    first, second = place / "first", place / "second"
    first.touch()
    os.link(first, second)
    try:
        os.link(first, second)
    except FileExistsError:
        return os.path.samefile(first, second)
    return False


def _symlinks(place: Path) -> bool:
    link = place / "link"
    link.symlink_to("once")
    return link.is_symlink()


def _locks(place: Path) -> bool:
    """Whether flock excludes a second holder on this host."""
    path = place / "lock"
    with open(path, "w", encoding="utf-8") as first, open(path, "w", encoding="utf-8") as second:
        fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return not can_lock(second.fileno())


def can_lock(descriptor: int) -> bool:
    """Take a flock if it is free; return whether it was."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _locks_ranges(place: Path) -> bool:
    """The same for fcntl's locks, which exclude only other processes."""
    with open(place / "ranges", "w", encoding="utf-8") as stream:
        fcntl.lockf(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        child = os.fork()
        if child == 0:
            try:
                fcntl.lockf(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os._exit(0)
            except OSError:
                os._exit(1)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


def _maps(place: Path) -> bool:
    """Whether a reader sees what was written through a shared mapping."""
    path = place / "mapped"
    path.write_bytes(bytes(mmap.PAGESIZE))
    with open(path, "r+b") as stream, mmap.mmap(stream.fileno(), 0) as mapped:
        mapped[:4] = b"here"
        mapped.flush()
    return path.read_bytes()[:4] == b"here"


def _keeps_case(place: Path) -> bool:
    """Whether names that differ only in case are different files."""
    (place / "Case").touch()
    return not (place / "case").exists()


def _sync_s(place: Path) -> float:
    """Seconds for a small file to reach the disk: the median of several."""
    taken: list[float] = []
    began = time.monotonic()
    with open(place / "small", "wb", buffering=0) as stream:
        while not taken or (len(taken) < _SYNCS and time.monotonic() - began < _LONGEST_S):
            stream.write(bytes(4096))
            before = time.monotonic()
            os.fsync(stream.fileno())
            taken.append(time.monotonic() - before)
    return round(statistics.median(taken), 6)


def _clock_ahead_s(place: Path) -> float:
    """Return by how many seconds the file system's clock is ahead of this machine's."""
    path = place / "stamped"
    path.touch()
    before = time.time()
    os.utime(path)
    # The stamp may be of the clock's last tick.
    return round(path.stat().st_mtime - (before + time.time()) / 2, 3)


def _speed(place: Path) -> dict[str, Any]:
    """Megabytes a second, written to the disk and read back: random bytes, as file systems may compress."""
    if shutil.disk_usage(place).free < _ROOM * _BYTES:
        return {"error": "too little free space to try"}
    path, block = place / "large", os.urandom(_BLOCK)
    written, write_s = _write(path, block)
    size_mb = written / _MB
    read_s = _read(path)
    return {
        "mb": round(size_mb, 1),
        "write_mb_s": round(size_mb / max(write_s, 1e-6), 1),
        "read_mb_s": round(size_mb / max(read_s, 1e-6), 1),
    }


def _write(path: Path, block: bytes) -> tuple[int, float]:
    """Write for a limited time; return bytes and seconds."""
    began = time.monotonic()
    with open(path, "wb", buffering=0) as stream:
        while not stream.tell() or (stream.tell() < _BYTES and time.monotonic() - began < _LONGEST_S):
            stream.write(block)
            # Flush each block: otherwise the page cache would hide a slow disk.
            os.fdatasync(stream.fileno())
        size = stream.tell()
        # Otherwise reading would only measure the memory.
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return size, time.monotonic() - began


def _read(path: Path) -> float:
    began = time.monotonic()
    with open(path, "rb", buffering=0) as stream:
        while stream.read(_BLOCK) and time.monotonic() - began < _LONGEST_S:
            pass
        read = stream.tell()
    # Scaled up if reading all of it took too long.
    return (time.monotonic() - began) * path.stat().st_size / max(read, 1)


_ATTEMPTS: dict[str, Callable[[Path], Any]] = {
    "renames_over": _renames_over,
    "creates_once": _creates_once,
    "hard_links": _links,
    "symlinks": _symlinks,
    "flock": _locks,
    "fcntl": _locks_ranges,
    "mmap": _maps,
    "keeps_case": _keeps_case,
    "clock_ahead_s": _clock_ahead_s,
    "sync_s": _sync_s,
    "speed": _speed,
}
