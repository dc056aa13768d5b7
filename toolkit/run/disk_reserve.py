"""Room that a run keeps on its disk, so that it can record why it ended when the disk is full."""

from __future__ import annotations

import os
from contextlib import suppress

from toolkit.run.run_dir import RunDir

#: Enough for failure.json, its events, and a line of an attempt.
_BYTES = 1 << 16


def keep_reserve(run: RunDir) -> None:
    """Reserve the space unless the run has it. Raises OSError for the run's folder if the disk is full."""
    try:
        if run.reserve.exists() and run.reserve.stat().st_size == _BYTES:
            return
        # Random bytes: file systems with compression would reserve no space for zeros.
        with open(run.reserve, "wb") as stream:
            stream.write(os.urandom(_BYTES))
    except OSError as error:
        give_up_reserve(run)
        error.filename = str(run.path)
        raise


def give_up_half(run: RunDir) -> None:
    """Free half of the reserved space; the rest is for the record of a failure."""
    with suppress(OSError):
        os.truncate(run.reserve, _BYTES // 2)


def give_up_reserve(run: RunDir) -> None:
    """Free the reserved space."""
    with suppress(OSError):
        run.reserve.unlink()
