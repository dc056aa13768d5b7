"""Settings for NCCL's faults and timeouts, which torch reads from the environment."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager

from toolkit.errors import RendezvousError
from toolkit.exit_codes import ExitCode
from toolkit.run.failure.records import record_failure
from toolkit.run.phases import Phase
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World

log = logging.getLogger("toolkit")

#: The thread that watches NCCL may be stuck in the driver for at least this many seconds.
_STUCK_S = 600


def set_up_nccl(
    run: RunDir, nonce: str, timeout_s: float, environ: MutableMapping[str, str] = os.environ
) -> None:
    """Set the variables that the user has not set, before the process group is made.

    timeout_s  timeout of a collective
    """
    settings = {
        # End the process at once: after an abort of the communicator alone (2), the program would continue
        # with the partial result of a collective.
        "TORCH_NCCL_ASYNC_ERROR_HANDLING": "3",
        # For a driver that does not answer; the run's own watchdog reacts first, and names a rank.
        "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": str(int(max(_STUCK_S, 2 * timeout_s))),
        # The last collectives of each rank, for torch's fr_trace (this name since torch 2.9).
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
        "TORCH_FR_BUFFER_SIZE": "2000",
        "TORCH_FR_DUMP_TEMP_FILE": str(run.logs / f"{nonce}.nccl_rank_"),
    }
    for name, value in settings.items():
        environ.setdefault(name, value)


@contextmanager
def connecting(run: RunDir, world: World, timeout_s: float) -> Iterator[None]:
    """End this process if it is still connecting after timeout_s seconds: NCCL has no limit."""

    def give_up() -> None:
        error = RendezvousError(
            f"NCCL has not connected the ranks in {timeout_s:g} s: it may use a network interface that does "
            "not reach the other hosts. Set NCCL_SOCKET_IFNAME or NCCL_IB_HCA in the environment of the "
            "ranks; NCCL_DEBUG=INFO shows what it tries"
        )
        log.error("%s", error)
        record_failure(run, world, Phase.RENDEZVOUS, 0, error)
        os._exit(ExitCode.FAILED)

    timer = threading.Timer(timeout_s, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
