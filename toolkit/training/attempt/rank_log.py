"""The log of one rank of an attempt."""

from __future__ import annotations

import faulthandler
import logging
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from toolkit.config.secrets import concealed
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World

log = logging.getLogger("toolkit")


class _Formatter(logging.Formatter):
    """Writes no secret: an error may quote a value of the experiment."""

    def format(self, record: logging.LogRecord) -> str:
        return concealed(super().format(record))


@contextmanager
def log_to_file(run: RunDir, world: World) -> Iterator[None]:
    """Write the log of this process, including stack traces of crashes, to its file."""
    run.logs.mkdir(exist_ok=True)
    with open(run.log(world.nonce, world.rank), "a", encoding="utf-8") as stream:
        faulthandler.enable(stream)
        handler = logging.StreamHandler(stream)
        handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)
        log.info("rank %d of %d on %s, process %d", world.rank, world.size, socket.gethostname(), os.getpid())
        try:
            yield
        finally:
            log.removeHandler(handler)
            faulthandler.disable()
