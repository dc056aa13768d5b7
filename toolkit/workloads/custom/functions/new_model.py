"""The model that the user's function makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from toolkit.errors import UserError
from toolkit.workloads.custom.functions.reading.signatures import EXAMPLES
from toolkit.workloads.custom.functions.sections.classes import AnyModel
from toolkit.workloads.custom.functions.user_code import UserCode


def new_model(code: UserCode, section: AnyModel) -> nn.Module:
    """Return the model that `model` makes from its section. Raises UserError if it cannot be trained here."""
    found = code.call("model", section.arguments())
    place = code.place("model")
    if not isinstance(found, nn.Module):
        kind = type(found).__name__
        raise UserError(
            f"{place}: model returned {kind}, expected a torch.nn.Module, as in {EXAMPLES['model']}"
        )
    for name, module in found.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.track_running_stats:
            raise UserError(
                f"{place}: {name or 'the model'} is a {type(module).__name__}. Its running averages depend "
                "on how samples are spread over processes: use GroupNorm or LayerNorm, which models of "
                "torchvision take as norm_layer"
            )
        if isinstance(module, nn.Embedding | nn.EmbeddingBag) and module.sparse:
            raise UserError(
                f"{place}: {name or 'the model'} is an {type(module).__name__} with sparse gradients, which "
                "are not summed over processes: leave out sparse=True"
            )
    for name, parameter in found.named_parameters():
        if is_lazy(parameter):
            raise UserError(
                f"{place}: {name} has no shape yet, so its values would depend on the first batch: give its "
                "layer the size of its input, or call the new model on an example before you return it"
            )
    for name, value in found.state_dict().items():
        if not isinstance(value, torch.Tensor):
            raise UserError(
                f"{place}: the state of the model has a {type(value).__name__}, {name}, which a checkpoint "
                "cannot hold: expected tensors"
            )
    return found


@dataclass(frozen=True, slots=True)
class Before:
    """The state that a forward pass must not change.

    buffers   copies of the buffers that a checkpoint holds, by name
    versions  of the weights, by name; torch increases them at each change in place
    """

    buffers: Mapping[str, torch.Tensor]
    versions: Mapping[str, int]


def before_forward(model: nn.Module) -> Before:
    """Record the state that the first forward pass must not change."""
    stored = model.state_dict().keys()
    return Before(
        buffers={name: each.clone() for name, each in model.named_buffers() if name in stored},
        versions={name: each._version for name, each in model.named_parameters()},
    )


def check_unchanged(model: nn.Module, before: Before, place: str) -> None:
    """Raise UserError if a forward pass has changed a buffer or weight: processes would then differ."""
    now = before_forward(model)
    reason = "so it would depend on how samples are spread over processes"
    for name, value in now.buffers.items():
        if name not in before.buffers or not _is_same(value, before.buffers[name]):
            raise UserError(
                f"{place}: step changes {name}, a buffer of the model, {reason}: change it in a hook of "
                "the optimizer (register_step_post_hook), or train in a script if it depends on samples"
            )
    for name, version in now.versions.items():
        if version != before.versions.get(name, version):
            raise UserError(
                f"{place}: step changes {name}, a weight of the model, {reason}: only the optimizer may "
                "change weights; max_norm of an Embedding changes them, too"
            )


def _is_same(value: torch.Tensor, other: torch.Tensor) -> bool:
    if value.shape != other.shape:
        return False
    # NaN differs from itself.
    return bool(((value == other) | ((value != value) & (other != other))).all())
