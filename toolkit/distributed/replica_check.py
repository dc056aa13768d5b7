"""Comparing the ranks' weights, because a faulty processor reports no error."""

from __future__ import annotations

import zlib
from collections import Counter

import torch
from torch import nn

from toolkit.distributed.process_group import Group
from toolkit.errors import RanksDiverged


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
