"""Machines that do not share the run's folder: finding that out, and that they read the same data."""

from __future__ import annotations

import socket

from toolkit.attempts.ledger import read_attempts
from toolkit.distributed import Group
from toolkit.errors import DataError
from toolkit.rundir import RunDir


def shares_folder(run: RunDir, group: Group) -> bool:
    """Whether the ranks of all machines see the line of this start, which rank 0 has written. Collective."""
    if group.world.nodes == 1:
        return True
    return all(group.gather(any(line.get("nonce") == group.world.nonce for line in read_attempts(run))))


def check_same_data(fingerprint: str, group: Group) -> None:
    """Raise DataError where a machine has other data than another. Collective."""
    if group.shares_folder:
        return
    ranks = group.gather((socket.gethostname(), fingerprint))
    first, expected = ranks[0]
    other = next((host for host, found in ranks if found != expected), None)
    if other is not None:
        raise DataError(
            f"the data on {other} are not those on {first}: the machines share no folder, so each needs a "
            "copy of the same files under the same path"
        )
