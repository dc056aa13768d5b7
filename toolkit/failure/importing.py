"""The import of the worker: it may fail before there is a worker that could explain it."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from toolkit.failure.records import record_failure
from toolkit.rundir import RunDir
from toolkit.world import World

_PHASE = "import"


@contextmanager
def explained_import(run: RunDir, world: World) -> Iterator[None]:
    """Put what fails in here into the rank's log and into failure.json, like any later failure."""
    try:
        yield
    except Exception as error:
        _log(run, world, error)
        record_failure(run, world, _PHASE, 0, error)
        raise


def _log(run: RunDir, world: World, error: Exception) -> None:
    """Unless the log gets it anyway: rank 0 of a run in the foreground complains to the terminal."""
    with suppress(OSError):
        run.logs.mkdir(exist_ok=True)
        with open(run.log(world.nonce, world.rank), "a", encoding="utf-8") as stream:
            if not os.path.sameopenfile(stream.fileno(), sys.stderr.fileno()):
                traceback.print_exception(error, file=stream)
