"""Comparing the ranks: their folder, data and weights. A faulty processor reports no error."""

from __future__ import annotations

import socket
import zlib
from collections import Counter

import torch
from torch import nn

from toolkit.distributed.process_group import Group
from toolkit.errors import DataError, RanksDiverged
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


def weights_crc32(model: nn.Module) -> int:
    """CRC-32 of the tensors of state_dict: buffers outside of it are caches, which may differ."""
    value = 0
    for tensor in filter(torch.is_tensor, model.state_dict().values()):
        raw = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        value = zlib.crc32(raw.numpy().data, value)
    return value


def compare_weights(group: Group, model: nn.Module, step: int) -> None:
    """Check that all ranks hold the same weights. Collective.

    Raises RanksDiverged on every rank, naming those that differ from the majority; with two ranks there is
    no majority.
    """
    if group.world.size == 1:
        return
    sums = group.gather(weights_crc32(model))
    (usual, votes), *others = Counter(sums).most_common()
    if not others:
        return
    if votes > others[0][1]:
        odd = [rank for rank, value in enumerate(sums) if value != usual]
        names = ", ".join(map(str, odd))
        raise RanksDiverged(f"after step {step} the weights of rank {names} differ from the others'", odd)
    raise RanksDiverged(f"after step {step} the ranks hold different weights, with no majority", [])
