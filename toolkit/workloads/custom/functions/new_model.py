"""The model that the user's function makes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from toolkit.distributed.running_averages import averages_of
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
        if isinstance(module, nn.SyncBatchNorm):
            raise UserError(
                f"{place}: {name or 'the model'} is a SyncBatchNorm, which waits for the other processes in "
                "each pass, and they may have fewer passes: use BatchNorm"
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


@contextmanager
def unchanged(model: nn.Module, place: str) -> Iterator[None]:
    """Raise UserError if the block changes a buffer or weight of the model: processes would then differ.

    Only the buffers that a checkpoint holds count, and running averages do not: the loop makes them equal.
    """
    buffers = {name: each.clone() for name, each in _stored_buffers(model).items()}
    # torch increases the version of a tensor at each change in place.
    versions = {name: each._version for name, each in model.named_parameters()}
    yield
    reason = "so it would depend on how samples are spread over processes"
    for name, value in _stored_buffers(model).items():
        if name not in buffers or not _is_same(value, buffers[name]):
            raise UserError(
                f"{place}: step changes {name}, a buffer of the model, {reason}: change it in a hook of "
                "the optimizer (register_step_post_hook), or train in a script if it depends on samples"
            )
    for name, each in model.named_parameters():
        if each._version != versions.get(name, each._version):
            raise UserError(
                f"{place}: step changes {name}, a weight of the model, {reason}: only the optimizer may "
                "change weights; max_norm of an Embedding changes them, too"
            )


def _stored_buffers(model: nn.Module) -> dict[str, torch.Tensor]:
    counted = model.state_dict().keys() - averages_of(model).keys()
    return {name: each for name, each in model.named_buffers() if name in counted}


def _is_same(value: torch.Tensor, other: torch.Tensor) -> bool:
    if value.shape != other.shape:
        return False
    # NaN differs from itself.
    return bool(((value == other) | ((value != value) & (other != other))).all())
