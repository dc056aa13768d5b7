"""Sums of one call of `step`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import torch

from toolkit.errors import UserError
from toolkit.task import Loss
from toolkit.workloads.custom.functions.reading.signatures import EXAMPLES, LOSS, WEIGHTS, wrong_name

NO_GRADIENT = (
    "the loss does not depend on the weights of the model, so nothing can be learnt: compute it from "
    "model(…), without detach(), item() and torch.no_grad()"
)
_METRIC = '{"loss": …, "accuracy": scores.argmax(1) == labels}'
_LOSS_HINT = 'reduction="none" makes one value per sample; per token, return "weights" of the same shape'


def metric_names(returned: Any, place: str) -> tuple[str, ...]:
    """Return the names of the metrics that `step` returned. Raises UserError if it returned no dictionary."""
    if not isinstance(returned, Mapping) or LOSS not in returned:
        found = f'a mapping without "{LOSS}"' if isinstance(returned, Mapping) else type(returned).__name__
        raise UserError(f"{place}: step returned {found}, expected a dictionary: {EXAMPLES['step']}")
    names = tuple(name for name in returned if name not in (LOSS, WEIGHTS))
    if wrong := wrong_name(names):
        raise UserError(f"{place}: step returned {wrong}")
    return names


def summed(returned: Any, samples: int, tokens: int, names: Sequence[str], place: str) -> Loss:
    """Add up the results of `step` for a number of samples with a sum of lengths.

    The count is that of the samples, or the sum of the weights: a scalar tensor if they are on a GPU. The
    sums are for each metric its sum and its count; shape [2 * metrics].

    names   names of the expected metrics
    place   file and line of `step`
    Raises UserError for other names, and unless there is one value per sample or per weight.
    """
    if not isinstance(returned, Mapping) or returned.keys() - {WEIGHTS} != {LOSS, *names}:
        found, expected = metric_names(returned, place), ", ".join((LOSS, *names))
        problem = f"step returned {', '.join((LOSS, *found))}, expected {expected}"
        raise UserError(f"{place}: {problem}: the same names for each batch, in training and evaluation")
    loss, weights = returned[LOSS], returned.get(WEIGHTS)
    if not isinstance(loss, torch.Tensor):
        problem = f"the loss is of type {type(loss).__name__}, expected a tensor"
        raise UserError(f"{place}: {problem}: {_LOSS_HINT}")
    if weights is not None and not isinstance(weights, torch.Tensor):
        raise UserError(f"{place}: the weights are of type {type(weights).__name__}, expected a tensor")
    if weights is not None and weights.shape != loss.shape:
        shapes = f"{list(weights.shape)}, the loss {list(loss.shape)}"
        raise UserError(f"{place}: the weights have the shape {shapes}, expected the same")
    if weights is None:
        _check_one_each("the loss", loss, samples, place, f": {_LOSS_HINT}")
    # In half precision a sum of ones stops growing at 256 or 2048, or overflows.
    loss, weights = _wide(loss), None if weights is None else _wide(weights)
    count = float(samples) if weights is None else _sum_of(weights)
    total = loss.sum() if weights is None else (loss * weights).sum()
    values = {name: _numbers(name, returned[name], loss.device, place) for name in names}
    sums = [each for name in names for each in _metric(name, values[name], weights, count, samples, place)]
    metrics = torch.stack(sums) if sums else loss.new_zeros(0, dtype=torch.float64)
    return Loss(total=total, count=count, tokens=tokens, sums=metrics)


def _numbers(name: str, value: Any, device: torch.device, place: str) -> torch.Tensor:
    """Return the values of a metric on a device. Raises UserError for a value that is not a real number."""
    found: torch.Tensor | None = value if isinstance(value, torch.Tensor) else None
    if found is None:
        with suppress(TypeError, ValueError, RuntimeError):
            found = torch.as_tensor(value)
    if found is None or found.is_complex():
        kind = type(value).__name__ if found is None else f"tensor of {found.dtype}"
        raise UserError(f"{place}: {name} is a {kind}, expected a number for each sample, as in {_METRIC}")
    return found.detach() if found.device == device else found.detach().to(device)


def _metric(
    name: str,
    value: torch.Tensor,
    weights: torch.Tensor | None,
    count: float | torch.Tensor,
    samples: int,
    place: str,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the sum and the count of a metric: two scalars of float64."""
    if weights is not None and value.shape == weights.shape:
        return (value * weights.double()).sum(), _scalar(count, value.device)
    _check_one_each(name, value, samples, place, f", as in {_METRIC}")
    return value.sum(dtype=torch.float64), _scalar(float(samples), value.device)


def _wide(values: torch.Tensor) -> torch.Tensor:
    """Return values of half precision in single precision, others as they are."""
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values


def _sum_of(weights: torch.Tensor) -> float | torch.Tensor:
    """Return the sum of the weights; on a GPU as a tensor, because to read it would make the host wait."""
    found = weights.detach().sum()
    return found.double() if found.is_cuda else found.item()


def _scalar(value: float | torch.Tensor, device: torch.device) -> torch.Tensor:
    """Return a scalar that is filled on the device, so the host does not wait for a copy."""
    if isinstance(value, torch.Tensor):
        return value.to(device)
    return torch.full((), value, dtype=torch.float64, device=device)


def _check_one_each(name: str, values: torch.Tensor, samples: int, place: str, hint: str) -> None:
    if not (values.ndim > 0 and len(values) == samples == values.numel()):
        problem = f"has the shape {list(values.shape)}, expected one value for each of {samples} samples"
        raise UserError(f"{place}: {name} {problem}{hint}")
