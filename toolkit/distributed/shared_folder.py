"""Whether all machines share the run's folder, and whether all ranks have the same data."""

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
    """Raise DataError if two ranks have different data. Collective."""
    ranks = group.gather((socket.gethostname(), fingerprint))
    first, expected = ranks[0]
    for rank, (host, found) in enumerate(ranks):
        if found != expected:
            raise DataError(
                f"the data of rank {rank} on {host} differ from those of rank 0 on {first}: each rank needs "
                "the same samples in the same order. Sort data from a set or a folder, seed random "
                "numbers, and copy the same files to every host that shares no folder with the others"
            )
