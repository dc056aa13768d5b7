"""Values that `step` returns are summed, or refused with the place of `step`."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from tests.toolkit.gpu.device import CUDA, pretended_device
from toolkit.distributed.step_sync import StepSync
from toolkit.errors import UserError
from toolkit.task import Loss
from toolkit.workloads.custom.functions.step_sums import metric_names, summed

PLACE = "digits.py:7"


def sums(returned: dict[str, Any], *names: str, samples: int = 3) -> Loss:
    return summed(returned, samples, 2, names, PLACE)


def test_values_of_samples_are_added_and_counted() -> None:
    right = torch.tensor([True, False, True])
    found = sums({"loss": torch.tensor([1.0, 2.0, 4.0]), "accuracy": right}, "accuracy")
    assert (found.total.item(), found.count, found.sums.tolist()) == (7.0, 3.0, [2.0, 3.0])


def test_a_list_of_numbers_is_a_metric_too() -> None:
    assert sums({"loss": torch.ones(3), "f1": [0.5, 0.25, 0.0]}, "f1").sums.tolist() == [0.75, 3.0]


def test_weights_apply_to_metrics_per_token_but_not_to_metrics_per_sample() -> None:
    loss, weights = torch.tensor([[1.0, 2.0], [4.0, 8.0]]), torch.tensor([[1, 1], [1, 0]])
    returned = {"loss": loss, "weights": weights, "right": loss > 1, "whole": torch.tensor([0, 1])}
    found = sums(returned, "right", "whole", samples=2)
    assert (found.total.item(), found.count, found.sums.tolist()) == (7.0, 3.0, [2.0, 3.0, 1.0, 2.0])


def test_gradients_flow_through_the_loss_alone() -> None:
    values = torch.ones(3, requires_grad=True)
    found = sums({"loss": values * 2, "size": values}, "size")
    found.total.backward()
    assert values.grad is not None
    assert values.grad.tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_weights_in_half_precision_are_counted_one_by_one(dtype: torch.dtype) -> None:
    count = 70001
    ones = torch.ones(2, count, dtype=dtype)
    found = sums({"loss": ones.float(), "weights": ones, "right": ones}, "right", samples=2)
    assert (found.count, found.sums.tolist()) == (2.0 * count, [2.0 * count] * 2)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("weighs", [False, True])
def test_a_loss_in_half_precision_is_summed_in_single_precision(dtype: torch.dtype, weighs: bool) -> None:
    count = 70001
    losses = torch.ones(count, dtype=dtype, requires_grad=True)
    weights = {"weights": torch.ones(count, dtype=dtype)} if weighs else {}
    found = sums({"loss": losses, **weights}, samples=count)
    assert found.total.item() == count
    found.total.backward()
    assert losses.grad is not None
    assert torch.equal(losses.grad, torch.ones(count, dtype=dtype))


def test_sums_of_doubles_stay_doubles() -> None:
    loss = torch.tensor([1.0, 2.0**-40], dtype=torch.float64)
    assert sums({"loss": loss}, samples=2).total.item() == 1.0 + 2.0**-40
    assert sums({"loss": loss, "weights": loss}, samples=2).count == 1.0 + 2.0**-40


@pytest.mark.parametrize(
    "returned, names, numbers",
    [
        ({"loss": [1.0, 2.0]}, (), [3.0, 2.0]),
        ({"loss": [1.0, 2.0], "weights": [1.0, 0.5]}, (), [2.0, 1.5]),
        ({"loss": [1.0, 2.0], "weights": [1.0, 0.5], "right": [1.0, 1.0]}, ("right",), [2.0, 1.5, 1.5, 1.5]),
    ],
    ids=["loss alone", "weights", "weights and a metric"],
)
def test_step_on_a_gpu_is_summed_without_waiting_for_it(
    returned: dict[str, list[float]], names: tuple[str, ...], numbers: list[float]
) -> None:
    with pretended_device() as device:
        values = {name: torch.tensor(each, device=CUDA) for name, each in returned.items()}
        device.waits.clear()
        found = sums(values, *names, samples=2)
        sync = StepSync(CUDA, 1, tuple(each for name in names for each in (name, f"{name} count")))
        sync.add(0, found)
        assert device.waits == []
        totals = sync.combine(sync.local_rows(0, False))
    assert [totals.loss, totals.count, *totals.sums.values()] == numbers


@pytest.mark.parametrize(
    "returned",
    [
        {"loss": torch.ones(2)},
        {"loss": torch.ones(3, 2)},
        {"loss": torch.ones(3), "weights": torch.ones(2)},
        {"loss": torch.ones(3), "more": torch.ones(3)},
        *({"loss": torch.ones(3), "accuracy": each} for each in ("high", torch.ones(3) * 1j)),
    ],
)
def test_values_that_cannot_be_summed_are_refused(returned: dict[str, Any]) -> None:
    names = {"accuracy"} & returned.keys()
    with pytest.raises(UserError, match=re.escape(PLACE)):
        sums(returned, *names)


@pytest.mark.parametrize("returned", [torch.ones(3), {"accuracy": 1}, None])
def test_return_value_without_a_loss_is_refused(returned: Any) -> None:
    with pytest.raises(UserError, match=re.escape(PLACE)):
        metric_names(returned, PLACE)
