"""Values that `step` returns are summed, or refused with the place of `step`."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

from toolkit.errors import UserError
from toolkit.workloads.custom.functions.step_sums import StepSums, metric_names, summed

PLACE = "digits.py:7"


def sums(returned: dict[str, Any], *names: str, samples: int = 3) -> StepSums:
    return summed(returned, samples, names, PLACE)


def test_values_of_samples_are_added_and_counted() -> None:
    right = torch.tensor([True, False, True])
    found = sums({"loss": torch.tensor([1.0, 2.0, 4.0]), "accuracy": right}, "accuracy")
    assert (found.loss.item(), found.count, found.metrics.tolist()) == (7.0, 3.0, [2.0, 3.0])


def test_a_list_of_numbers_is_a_metric_too() -> None:
    assert sums({"loss": torch.ones(3), "f1": [0.5, 0.25, 0.0]}, "f1").metrics.tolist() == [0.75, 3.0]


def test_weights_apply_to_metrics_per_token_but_not_to_metrics_per_sample() -> None:
    loss, weights = torch.tensor([[1.0, 2.0], [4.0, 8.0]]), torch.tensor([[1, 1], [1, 0]])
    returned = {"loss": loss, "weights": weights, "right": loss > 1, "whole": torch.tensor([0, 1])}
    found = sums(returned, "right", "whole", samples=2)
    assert (found.loss.item(), found.count, found.metrics.tolist()) == (7.0, 3.0, [2.0, 3.0, 1.0, 2.0])


def test_gradients_flow_through_the_loss_alone() -> None:
    values = torch.ones(3, requires_grad=True)
    found = sums({"loss": values * 2, "size": values}, "size")
    found.loss.backward()
    assert values.grad is not None
    assert values.grad.tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize(
    "returned",
    [
        {"loss": torch.tensor(1.0)},
        {"loss": torch.ones(2)},
        {"loss": torch.ones(3, 2)},
        {"loss": 1.0},
        {"loss": torch.ones(3), "weights": torch.ones(2)},
        {"loss": torch.ones(3), "more": torch.ones(3)},
        *({"loss": torch.ones(3), "accuracy": each} for each in (None, "high", torch.ones(3) * 1j)),
        {"loss": torch.ones(3), "accuracy": [object()] * 3},
        {"loss": torch.ones(3), "accuracy": torch.tensor(0.5)},
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
