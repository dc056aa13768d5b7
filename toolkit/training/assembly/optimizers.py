"""Optimizers with weight-decay groups."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from toolkit.config.schema import Optimizer

Group = dict[str, Any]


def build_optimizer(model: nn.Module, config: Optimizer) -> torch.optim.Optimizer:
    """An optimizer over the trainable parameters; those that `no_decay` names take no weight decay.

    The order of parameters is that of the model, so that a stored state fits.
    """
    decayed: list[nn.Parameter] = []
    free: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            exempt = any(part in name.lower() for part in config.no_decay)
            (free if exempt else decayed).append(parameter)
    groups: list[Group] = [
        {"params": decayed, "weight_decay": config.weight_decay},
        {"params": free, "weight_decay": 0.0},
    ]
    groups = [group for group in groups if group["params"]]
    return _KINDS[config.kind](groups, config)


def _eager(kind: Callable[..., torch.optim.Optimizer]) -> Callable[..., torch.optim.Optimizer]:
    """Return an optimizer class without torch's compiler wrappers around its methods.

    Their first call imports the compiler: two seconds of CPU at every start of every rank, although nothing
    is compiled. The wrapper of `step` also disables gradients, which this keeps.
    """
    wrapped = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")
    methods = {name: inspect.unwrap(getattr(kind, name)) for name in wrapped}
    step = torch.no_grad()(inspect.unwrap(kind.step))  # type: ignore[attr-defined]
    return type(kind.__name__, (kind,), {**methods, "step": step})  # type: ignore[arg-type]


_Adam, _AdamW, _SGD = map(_eager, (torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD))


def _adam(groups: list[Group], config: Optimizer) -> torch.optim.Optimizer:
    return _Adam(groups, lr=config.lr, betas=config.betas, eps=config.eps, fused=True)


def _adamw(groups: list[Group], config: Optimizer) -> torch.optim.Optimizer:
    return _AdamW(groups, lr=config.lr, betas=config.betas, eps=config.eps, fused=True)


def _sgd(groups: list[Group], config: Optimizer) -> torch.optim.Optimizer:
    return _SGD(groups, lr=config.lr, momentum=config.momentum, fused=True)


_KINDS: Mapping[str, Callable[[list[Group], Optimizer], torch.optim.Optimizer]] = {
    "adam": _adam,
    "adamw": _adamw,
    "sgd": _sgd,
}
