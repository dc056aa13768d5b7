"""The log of one rank of an attempt."""

from __future__ import annotations

import faulthandler
import logging
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from toolkit.config.secrets import concealed
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World

log = logging.getLogger("toolkit")


class _Formatter(logging.Formatter):
    """Conceals secrets: an error may quote a value of the experiment."""

    def format(self, record: logging.LogRecord) -> str:
        return concealed(super().format(record))


class _File(logging.StreamHandler[TextIO]):
    """Writes to the log's file. A full disk does not end the run.

    Its lines are written later if there is space again, or lost.
    """

    def handleError(self, record: logging.LogRecord) -> None:
        if not isinstance(sys.exc_info()[1], OSError):
            super().handleError(record)


class _Output(logging.Handler):
    """Writes to the current sys.stdout, which a progress bar replaces while it is shown."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            # The error that ends the process is printed at its exit.
            return
        with suppress(OSError, ValueError):
            sys.stdout.write(f"{self.format(record)}\n")
            sys.stdout.flush()


@contextmanager
def log_to_file(run: RunDir, world: World) -> Iterator[None]:
    """Write the log of this process, including stack traces of crashes, to its file.

    Rank 0 also writes it to standard output, unless that is this file.
    """
    run.logs.mkdir(exist_ok=True)
    path = run.log(world.nonce, world.rank)
    # A message may hold the name of a file that is not UTF-8.
    with open(path, "a", encoding="utf-8", errors="backslashreplace") as stream:
        faulthandler.enable(stream)
        handlers: list[logging.Handler] = [_File(stream)]
        if world.is_main and not is_output(path):
            handlers.append(_Output())
        log.setLevel(logging.INFO)
        for handler in handlers:
            handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(message)s"))
            log.addHandler(handler)
        log.info("rank %d of %d on %s, process %d", world.rank, world.size, socket.gethostname(), os.getpid())
        try:
            yield
        finally:
            for handler in handlers:
                log.removeHandler(handler)
            faulthandler.disable()
            # Here, because an error at the end of `with` would replace how the attempt ended.
            with suppress(OSError):
                stream.close()


def is_output(path: Path) -> bool:
    """Whether standard output is this file, as in a job."""
    with suppress(OSError):
        return os.path.samestat(os.stat(path), os.fstat(1))
    return False
