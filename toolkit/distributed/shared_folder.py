"""Whether all machines share the run's folder, and whether they have the same data if they do not."""

from __future__ import annotations

import socket

from toolkit.distributed.process_group import Group
from toolkit.errors import DataError
from toolkit.run.attempts.records import read_attempts
from toolkit.run.run_dir import RunDir


def shares_folder(run: RunDir, group: Group) -> bool:
    """Whether all ranks see the line of this attempt that rank 0 wrote into attempts.jsonl. Collective."""
    if group.world.nodes == 1:
        return True
    return all(group.gather(any(each.nonce == group.world.nonce for each in read_attempts(run))))


def check_same_data(fingerprint: str, group: Group) -> None:
    """Raise DataError if two machines have different data. Collective."""
    if group.shares_folder:
        return
    ranks = group.gather((socket.gethostname(), fingerprint))
    first, expected = ranks[0]
    other = next((host for host, found in ranks if found != expected), None)
    if other is not None:
        raise DataError(
            f"the data on {other} differ from those on {first}: the machines share no folder, so each "
            "needs a copy of the same files under the same path"
        )
