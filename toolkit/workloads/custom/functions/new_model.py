"""The model that the user's function makes."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from toolkit.errors import UserError
from toolkit.workloads.custom.functions.reading.signatures import EXAMPLES
from toolkit.workloads.custom.functions.sections import FunctionModel
from toolkit.workloads.custom.functions.user_code import UserCode


def new_model(code: UserCode, section: FunctionModel) -> nn.Module:
    """Return the model that `model` makes of its section. Raises UserError if it cannot be trained here."""
    found = code.model(section.arguments())
    place = code.place("model")
    if not isinstance(found, nn.Module):
        kind = type(found).__name__
        raise UserError(
            f"{place}: model returned {kind}, expected a torch.nn.Module, as in {EXAMPLES['model']}"
        )
    for name, module in found.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.track_running_stats:
            raise UserError(
                f"{place}: {name or 'the model'} is a {type(module).__name__}, whose running averages "
                "depend on how samples are spread over processes: use GroupNorm or LayerNorm, or "
                "track_running_stats=False"
            )
        if isinstance(module, nn.Embedding | nn.EmbeddingBag) and module.sparse:
            raise UserError(
                f"{place}: {name or 'the model'} is an {type(module).__name__} with sparse gradients, which "
                "are not summed over processes: leave out sparse=True"
            )
    for name, parameter in found.named_parameters():
        if is_lazy(parameter):
            raise UserError(
                f"{place}: {name} has no shape yet, so the first batch would decide its numbers: give its "
                "layer the size of its input, or call the new model on an example before you return it"
            )
    for name, value in found.state_dict().items():
        if not isinstance(value, torch.Tensor):
            raise UserError(
                f"{place}: the state of the model has a {type(value).__name__}, {name}, which a checkpoint "
                "cannot hold: expected tensors"
            )
    return found


def stored_buffers(model: nn.Module) -> dict[str, torch.Tensor]:
    """Copies of the buffers that a checkpoint holds, by name."""
    stored = model.state_dict().keys()
    return {name: each.clone() for name, each in model.named_buffers() if name in stored}


def check_buffers(model: nn.Module, before: Mapping[str, torch.Tensor], place: str) -> None:
    """Raise UserError if a forward pass has changed a buffer: each process would have another."""
    for name, value in stored_buffers(model).items():
        if name not in before or not _is_same(value, before[name]):
            raise UserError(
                f"{place}: step changes {name}, a buffer of the model, so it would depend on how samples are "
                "spread over processes: make it a parameter or a constant, such as track_running_stats=False "
                "makes of running averages"
            )


def _is_same(value: torch.Tensor, other: torch.Tensor) -> bool:
    if value.shape != other.shape:
        return False
    # NaN differs from itself.
    return bool(((value == other) | ((value != value) & (other != other))).all())
