"""Optimizers with weight-decay groups, and learning rates as pure functions of the step."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from toolkit.config.schema import LrScheduler, Optimizer

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
    """Return an optimizer class without what torch wraps around its methods for the compiler.

    The wrappers import the compiler when they are first called: two seconds of CPU at every start of every
    rank, where nothing is compiled. What step's wrapper does besides is to switch gradients off.
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


def lr_factor(config: LrScheduler, step: int, total_steps: int, steps_per_epoch: int) -> float:
    """Factor of the peak learning rate in step number `step`, counted from 0.

    Warm-up of n steps goes 1/n, 2/n, …, 1: the first step already learns and none exceeds the peak.
    """
    warmup = _warmup_steps(config, total_steps)
    if step < warmup:
        return (step + 1) / warmup
    if config.kind == "constant":
        return 1.0
    if config.kind == "step" and config.step_at is not None:
        return config.gamma ** sum(step >= share * total_steps for share in config.step_at)
    if config.kind == "step":
        return config.gamma ** int((step - warmup) / (config.step_epochs * steps_per_epoch))
    done = (step - warmup) / max(1, total_steps - warmup)
    shape = 1.0 - done if config.kind == "linear" else 0.5 * (1.0 + math.cos(math.pi * done))
    return config.final_factor + (1.0 - config.final_factor) * shape


def _warmup_steps(config: LrScheduler, total_steps: int) -> int:
    return round(config.warmup * total_steps) if config.warmup <= 1 else int(config.warmup)
