"""train.compile: torch's compiler for the model of a run."""

from __future__ import annotations

import logging
from importlib.util import find_spec

import torch
from torch import nn

from toolkit.config.schema import Train

log = logging.getLogger("toolkit")

#: Lowest compute capability that Triton supports.
_LOWEST_CAPABILITY = (7, 0)


def compile_model(model: nn.Module, train: Train, device: torch.device) -> None:
    """Have torch compile the model's forward and backward pass at its first call, if the run is set to.

    The model stays the same module, with the same parameter names. Sizes are symbolic from the start, so that
    batches of another length need no new kernels, except for convolutions.
    """
    if why_not := why_not_compiled(model, train, device):
        log.debug("the model is not compiled: %s", why_not)
        return
    log.info("torch compiles the model at its first step, which takes a minute or more")
    # Dynamo would split the graph at DDP's buckets: less is fused, and some releases fail or recompile.
    torch._dynamo.config.optimize_ddp = False
    model.compile(dynamic=True)


def why_not_compiled(model: nn.Module, train: Train, device: torch.device) -> str:
    """Return why a run with fast reduction does not compile its model; empty if it compiles it."""
    if train.compile == "off":
        return "train.compile is off"
    if train.parallel == "dp":
        # Its copies of the model would call the compiled original.
        return "train.parallel is dp"
    if train.compile == "on":
        return ""
    if train.deterministic:
        return "train.deterministic is true"
    if device.type != "cuda":
        return "it computes on the CPU"
    if find_spec("triton") is None:
        return "Triton is not installed"
    if torch.cuda.get_device_capability(device) < _LOWEST_CAPABILITY:
        return "Triton makes no kernels for this GPU"
    if any(isinstance(each, nn.Conv1d) for each in model.modules()):
        # Inductor fixes the strides in the backward pass of a convolution (torch 2.13).
        return "torch would compile its convolution again for each length of a batch"
    return ""
