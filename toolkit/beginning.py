"""The weights that a new run begins with, where they come from an earlier one."""

from __future__ import annotations

from pathlib import Path

import torch.distributed as dist
from torch import nn

from toolkit.checkpoint.loading import load_file_of_weights
from toolkit.checkpoint.manifest import verify
from toolkit.config.schema import Experiment
from toolkit.distributed import Group
from toolkit.earlier import Weights, find_weights
from toolkit.errors import CheckpointError, DataError

_KEY = "train.start_from_checkpoint"


def begin_with(experiment: Experiment, model: nn.Module, group: Group) -> Path | None:
    """Load the weights that an experiment begins with, if it names some, and return their file. Collective.

    Rank 0 reads them, the others get its own. Raises DataError where they are damaged or not the model's.
    """
    name = experiment.train.start_from_checkpoint
    if name is None:
        return None
    file = None
    if group.world.is_main:
        weights = find_weights(_KEY, name)
        load_whole(_KEY, weights, model)
        file = weights.file
    if group.world.size > 1:
        for tensor in model.state_dict().values():
            dist.broadcast(tensor, src=0)
    return file


def load_whole(key: str, weights: Weights, model: nn.Module) -> None:
    """Load weights that verify, each of them and no other. Raises DataError naming key and fault."""
    try:
        if weights.checkpoint is not None:
            verify(weights.checkpoint)
        load_file_of_weights(weights.file, model)
    except CheckpointError as error:
        raise DataError(f"{key}: {error}") from error
