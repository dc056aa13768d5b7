"""Failures of the worker's import, which no worker can record."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from toolkit.config.secrets import concealed
from toolkit.run.failure.records import record_failure
from toolkit.run.phases import Phase
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World


@contextmanager
def record_import_error(run: RunDir, world: World) -> Iterator[None]:
    """Record an error in this context in the rank's log and in failure.json, and raise it again."""
    try:
        yield
    except Exception as error:
        _log(run, world, error)
        record_failure(run, world, Phase.IMPORT, 0, error)
        raise


def _log(run: RunDir, world: World, error: Exception) -> None:
    """Write the traceback to the log unless standard error goes there already."""
    with suppress(OSError):
        run.logs.mkdir(exist_ok=True)
        path = run.log(world.nonce, world.rank)
        with open(path, "a", encoding="utf-8", errors="backslashreplace") as stream:
            if not os.path.sameopenfile(stream.fileno(), sys.stderr.fileno()):
                stream.write(concealed("".join(traceback.format_exception(error))))
