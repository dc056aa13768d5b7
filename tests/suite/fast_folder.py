"""A folder in memory for what the tests write: many small files that are flushed and deleted."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

#: The tests of a run write about 2 GB.
_NEEDED_BYTES = 6 * 2**30


@contextmanager
def fast_folder(parent: Path = Path("/dev/shm")) -> Iterator[str]:
    """Yield a new folder below `parent`, "" where it has no room or runs no program; delete it at the end."""
    if not _is_fit(parent):
        yield ""
        return
    # A test that was cut off may have left a mount in it.
    with tempfile.TemporaryDirectory(prefix="suite.", dir=parent, ignore_cleanup_errors=True) as folder:
        yield folder


def _is_fit(parent: Path) -> bool:
    if not os.access(parent, os.W_OK):
        return False
    found = os.statvfs(parent)
    room = min(found.f_bavail * found.f_frsize, psutil.virtual_memory().available)
    return room >= _NEEDED_BYTES and not found.f_flag & os.ST_NOEXEC
