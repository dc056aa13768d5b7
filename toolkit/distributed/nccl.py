"""Settings for NCCL's faults and timeouts, which torch reads from the environment."""

from __future__ import annotations

import os
from collections.abc import MutableMapping

from toolkit.run.run_dir import RunDir

#: Least number of seconds for which the thread that watches NCCL may be stuck in the driver.
_STUCK_S = 600


def set_up_nccl(
    run: RunDir, nonce: str, timeout_s: float, environ: MutableMapping[str, str] = os.environ
) -> None:
    """Set the variables that the user has not set, before the process group is made.

    timeout_s  of a collective
    """
    for name, value in _settings(run, nonce, timeout_s).items():
        environ.setdefault(name, value)


def _settings(run: RunDir, nonce: str, timeout_s: float) -> dict[str, str]:
    return {
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
