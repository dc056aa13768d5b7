"""The optimizer and the schedule that functions of the user make."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from toolkit.config.schema import Optimizer
from toolkit.errors import UserError
from toolkit.workloads.custom.functions.optimizing.made_sections import SECTION_KEYS
from toolkit.workloads.custom.functions.reading.parameters import Parameter


def optimizer_values(config: Optimizer, parameters: Sequence[Parameter]) -> dict[str, Any]:
    """Return an experiment's values for the parameters of the function `optimizer`, by name."""
    of_section = {each.name: getattr(config, each.name) for each in parameters if each.name in SECTION_KEYS}
    return {**of_section, **config.arguments}


def check_optimizer(found: Any, model: nn.Module, place: str) -> None:
    """Raise UserError unless the function returned an optimizer over parameters of the model."""
    if not isinstance(found, torch.optim.Optimizer):
        kind = type(found).__name__
        raise UserError(f"{place}: optimizer returned {kind}, expected a torch.optim.Optimizer")
    if isinstance(found, torch.optim.LBFGS):
        raise UserError(f"{place}: LBFGS calls step several times per update: use another optimizer")
    known = set(model.parameters())
    foreign = sum(each not in known for group in found.param_groups for each in group["params"])
    if foreign:
        raise UserError(
            f"{place}: the optimizer has {foreign} parameters that the given model lacks: "
            "make it from model.parameters()"
        )


def rate_factor(found: Any, place: str) -> float:
    """Return the factor that `schedule` returned. Raises UserError unless it is finite and at least 0."""
    try:
        factor = float(found)
    except (TypeError, ValueError):
        factor = math.nan
    if not 0 <= factor < math.inf:
        raise UserError(
            f"{place}: schedule returned {found!r}, expected a factor of the learning rate, such as 0.5"
        )
    return factor
