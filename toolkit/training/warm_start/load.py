"""Loading the initial weights of a new run from an earlier one."""

from __future__ import annotations

from pathlib import Path

import torch.distributed as dist
from torch import nn

from toolkit.checkpoint.loading.load import load_file_of_weights
from toolkit.checkpoint.verification import verify
from toolkit.config.schema import Experiment
from toolkit.distributed.process_group import Group
from toolkit.errors import CheckpointError, DataError
from toolkit.training.warm_start.find import Weights, find_weights

_KEY = "train.start_from_checkpoint"


def load_initial_weights(experiment: Experiment, model: nn.Module, group: Group) -> Path | None:
    """Load the weights that train.start_from_checkpoint names, if any, and return their file. Collective.

    Rank 0 reads and broadcasts them. Raises DataError if they are damaged or do not fit the model.
    """
    name = experiment.train.start_from_checkpoint
    if name is None:
        return None
    files: list[Path] = []

    def read() -> None:
        weights = find_weights(_KEY, name)
        load_exact_weights(_KEY, weights, model)
        files.append(weights.file)

    # Reading and verifying a large checkpoint may take longer than the time limit of a collective.
    group.main_first(read)
    if group.world.size > 1:
        for tensor in model.state_dict().values():
            # NCCL takes only tensors whose elements lie in their usual order.
            sent = tensor.contiguous()
            dist.broadcast(sent, src=0)
            if sent is not tensor:
                tensor.copy_(sent)
    return files[0] if files else None


def load_exact_weights(key: str, weights: Weights, model: nn.Module) -> None:
    """Load verified weights whose names match the model exactly. Raises DataError naming key and fault."""
    try:
        if weights.checkpoint is not None:
            verify(weights.checkpoint)
        load_file_of_weights(weights.file, model)
    except CheckpointError as error:
        raise DataError(f"{key}: {error}") from error
