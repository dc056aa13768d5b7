"""Optimizers with weight-decay groups."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import nn

from toolkit.config.library_arguments import OPTIMIZERS, OWN, SECTION_KEYS
from toolkit.config.schema import Optimizer
from toolkit.errors import UserError

Group = dict[str, Any]

#: Optimizers with a fused kernel for the CPU, too.
_FUSED = ("adam", "adamw", "sgd")


def build_optimizer(model: nn.Module, config: Optimizer, task: Any = None) -> torch.optim.Optimizer:
    """An optimizer over the trainable parameters; those that `no_decay` names get no weight decay.

    The parameters are in the order of the model, so that a stored state fits.

    task   its method `optimizer(model, config)` makes the optimizer if `optimizer.kind` is own: over
           parameters of the model, in an order that is the same each time
    """
    if config.kind == OWN:
        own: torch.optim.Optimizer = task.optimizer(model, config)
        return own
    decayed: list[nn.Parameter] = []
    free: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            exempt = any(part in name or part in name.lower() for part in config.no_decay)
            (free if exempt else decayed).append(parameter)
    groups: list[Group] = [
        {"params": decayed, "weight_decay": config.weight_decay},
        {"params": free, "weight_decay": 0.0},
    ]
    kind = _eager_kind(config.kind)
    known = inspect.signature(kind).parameters
    if "weight_decay" not in known:
        groups = [{"params": [*decayed, *free]}]
    of_section = {name: getattr(config, name) for name, kinds in SECTION_KEYS.items() if config.kind in kinds}
    is_fused = config.kind in _FUSED and all(map(_is_plain, (*decayed, *free)))
    fused = {"fused": True} if is_fused else {}
    given = {
        name: tuple(value) if isinstance(value, list) else value for name, value in config.arguments.items()
    }
    try:
        return kind(
            [group for group in groups if group["params"]], lr=config.lr, **of_section, **fused, **given
        )
    except (ValueError, TypeError) as error:
        raise UserError(f"torch's {OPTIMIZERS[config.kind].name} refuses its arguments: {error}") from None


def _is_plain(parameter: nn.Parameter) -> bool:
    """Whether a fused kernel can update the parameter: real numbers, without gaps in memory."""
    fills = torch.empty_like(parameter, device="meta").stride() == parameter.stride()
    return fills and parameter.is_floating_point()


@cache
def _eager_kind(name: str) -> Callable[..., torch.optim.Optimizer]:
    """Return an optimizer class without torch's compiler wrappers around its methods.

    Their first call imports the compiler: two seconds of CPU at every start of every rank, although nothing
    is compiled. The wrapper of `step` also disables gradients, which this keeps.
    """
    kind = getattr(torch.optim, OPTIMIZERS[name].name)
    wrapped = ("add_param_group", "zero_grad", "state_dict", "load_state_dict")
    methods = {name: inspect.unwrap(getattr(kind, name)) for name in wrapped}
    step = torch.no_grad()(inspect.unwrap(kind.step))
    return type(kind.__name__, (kind,), {**methods, "step": step})
