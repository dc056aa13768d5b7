"""The end of an attempt on a full disk: it is recorded, and nothing starts again."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress

from toolkit.run.disk_reserve import give_up_reserve
from toolkit.run.failure.classes import FULL_DISK, IO, NO_ROOM, class_of
from toolkit.run.failure.records import silent_record, write_first
from toolkit.run.run_dir import RunDir


def note_full_disk(run: RunDir, nonce: str, error: OSError, record_end: Callable[[], None]) -> str:
    """Record as much as fits on the disk, and return why the run is not restarted, as a sentence.

    nonce       identifies the attempt
    record_end  completes the records of the attempt; may raise OSError
    Raises `error` itself if it is of another kind.
    """
    if class_of(error) != IO:
        raise error
    kind = FULL_DISK if error.errno in NO_ROOM else IO
    why = f"{error.filename or run.path} cannot be written: {error.strerror}"
    give_up_reserve(run)
    if not run.failure.exists():
        write_first(run, silent_record(run, nonce, kind, why, 0, socket.gethostname()))
    with suppress(OSError):
        record_end()
    cure = "make room there, then " if kind == FULL_DISK else ""
    return f"{why}; {cure}`stk resume {run.run_id}` continues it"
