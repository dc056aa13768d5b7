"""The state of an optimizer as tensors. torch's optimizers keep only tensors; others also keep numbers."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from toolkit.errors import UserError

_OPTIMIZER, _NUMBER = "optimizer/", "optimizer-number/"
_GROUP, _GROUP_TENSOR = "optimizer-group/", "optimizer-group-tensor/"
#: Keys of a group that are not state: the schedule sets the learning rate.
_NO_STATE = ("params", "lr")

#: Of the values of a group, those that load_state_dict gets: it reads some of them.
_PLAIN = (bool, int, float, str, list, tuple, torch.Tensor)

_DTYPES = {bool: torch.bool, int: torch.int64, float: torch.float64}

Tensors = dict[str, torch.Tensor]


class OptimizerState:
    """The values that change while an optimizer is used.

    model      the model that it updates; the parameters' names are part of the tensors' names
    optimizer  a new one, before its first step
    """

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self._model, self._optimizer = model, optimizer
        self._first = [_copied(dict(_values(group))) for group in optimizer.param_groups]

    def tensors(self) -> Tensors:
        """Return the state by name. Raises UserError for what is neither a tensor nor a number."""
        found: Tensors = {}
        parameters = dict(self._parameters())
        for shared in (each for key, each in self._optimizer.state.items() if key not in parameters):
            raise _no_state(self._optimizer, "of all parameters together", shared)
        for parameter, name in parameters.items():
            for key, value in self._optimizer.state.get(parameter, {}).items():
                if isinstance(value, torch.Tensor):
                    found[f"{_OPTIMIZER}{name}/{key}"] = value
                elif _is_number(value):
                    found[f"{_NUMBER}{name}/{key}"] = _as_tensor(value)
                elif value is not None:
                    raise _no_state(self._optimizer, repr(key), value)
        for place, (group, first) in enumerate(zip(self._optimizer.param_groups, self._first, strict=True)):
            for key, value in _values(group):
                if key in first and _is_same(first[key], value):
                    continue
                if isinstance(value, torch.Tensor):
                    found[f"{_GROUP_TENSOR}{place}/{value.device.type}/{key}"] = value
                elif _is_number(value):
                    found[f"{_GROUP}{place}/{key}"] = _as_tensor(value)
                else:
                    raise _no_state(self._optimizer, f"{key!r} of a group", value)
        return found

    def load(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """Restore the result of `tensors`."""
        parameters = list(self._parameters())
        state = {
            index: kept
            for index, (parameter, name) in enumerate(parameters)
            if (
                kept := {key: _as_laid(each, parameter) for key, each in _of(tensors, f"{_OPTIMIZER}{name}/")}
            )
        }
        groups = self._optimizer.state_dict()["param_groups"]
        # load_state_dict copies all that it gets, and an object may be one that others hold.
        plain = [{name: each for name, each in group.items() if isinstance(each, _PLAIN)} for group in groups]
        self._optimizer.load_state_dict({"state": state, "param_groups": plain})
        for group, before in zip(self._optimizer.param_groups, groups, strict=True):
            group.update(_values(before))
        for index, kept in state.items():
            used = self._optimizer.state[parameters[index][0]]
            # torch converts to the type of the parameter, but master weights may be more precise.
            used.update(
                (key, each.to(used[key].device))
                for key, each in kept.items()
                if key in used and key != "step" and used[key].dtype != each.dtype
            )
        for parameter, name in parameters:
            numbers = {key: value.item() for key, value in _of(tensors, f"{_NUMBER}{name}/")}
            if numbers:
                self._optimizer.state[parameter].update(numbers)
        for place, group in enumerate(self._optimizer.param_groups):
            group.update((key, value.item()) for key, value in _of(tensors, f"{_GROUP}{place}/"))
            for name, value in _of(tensors, f"{_GROUP_TENSOR}{place}/"):
                device, _, key = name.partition("/")
                group[key] = value if device == "cpu" else value.to(group["params"][0].device)

    def _parameters(self) -> Iterator[tuple[nn.Parameter, str]]:
        """Yield parameters in the optimizer's order, with their names in the model."""
        names = {parameter: name for name, parameter in self._model.named_parameters()}
        for group in self._optimizer.param_groups:
            yield from ((each, names[each]) for each in group["params"])


def _of(tensors: Mapping[str, torch.Tensor], prefix: str) -> Iterator[tuple[str, torch.Tensor]]:
    return ((key.removeprefix(prefix), each) for key, each in tensors.items() if key.startswith(prefix))


def _as_laid(tensor: torch.Tensor, parameter: nn.Parameter) -> torch.Tensor:
    """Return a tensor in the memory format of its parameter, as the optimizer created it.

    A fused optimizer reads both in memory order.
    """
    if tensor.shape != parameter.shape or parameter.is_contiguous():
        return tensor
    return torch.empty_like(parameter, dtype=tensor.dtype, device=tensor.device).copy_(tensor)


def _values(group: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((key, each) for key, each in group.items() if key not in _NO_STATE)


def _copied(value: Any) -> Any:
    """A copy of a value with tensors, arrays and containers of its own; other objects are the same."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_copied(each) for each in value]
    return copy.deepcopy(value) if isinstance(value, np.ndarray | set | deque | bytearray) else value


def _is_same(first: Any, value: Any) -> bool:
    """Whether a value is equal to an earlier copy of it."""
    if isinstance(first, torch.Tensor) and isinstance(value, torch.Tensor):
        return torch.equal(first, value.to(first.device))
    if isinstance(first, dict) and isinstance(value, dict):
        return first.keys() == value.keys() and all(_is_same(first[key], value[key]) for key in first)
    if isinstance(first, list) and isinstance(value, list | tuple):
        return len(first) == len(value) and all(map(_is_same, first, value))
    if isinstance(first, np.ndarray) and isinstance(value, np.ndarray):
        return np.array_equal(first, value)
    return first is value or (type(first) is type(value) and bool(first == value))


def _is_number(value: Any) -> bool:
    return type(value) in _DTYPES


def _as_tensor(value: Any) -> torch.Tensor:
    return torch.tensor(value, dtype=_DTYPES[type(value)])


def _no_state(optimizer: torch.optim.Optimizer, what: str, value: Any) -> UserError:
    kept = f"{type(optimizer).__name__} keeps a {type(value).__name__} ({what})"
    return UserError(
        f"the optimizer {kept}, which no checkpoint can hold: a run could not be resumed exactly. Expected "
        "tensors and numbers for each parameter"
    )
