"""The checks for tasks, applied to a task of an external workload."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.toolkit.support.tiny import tiny
from toolkit.config import Experiment
from toolkit.errors import UserError
from toolkit.task import Loss, Score, Task, task_class
from toolkit.testing import check_task, contract


@pytest.mark.slow
def test_a_correct_task_passes_all_checks(tmp_path: Path) -> None:
    check_task(tiny(tmp_path / "data", "train.epochs=1"), tmp_path / "runs")


def test_task_that_lacks_a_method_is_refused_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or it would end with an error after the last step."""
    experiment = tiny(tmp_path)
    monkeypatch.delattr(task_class(experiment), "export")
    with pytest.raises(UserError, match="lacks the method export"):
        task_class(experiment)


def test_subclass_of_the_protocol_needs_methods_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Half(Task):
        def loss(self, model: Any, batch: Any) -> Loss:
            raise AssertionError

    monkeypatch.setattr("toolkit.task.load_code", lambda code: Half)
    with pytest.raises(UserError, match=r"lacks the method .*score"):
        task_class(tiny(tmp_path))


def test_outputs_in_the_wrong_order_fail_the_check(tmp_path: Path) -> None:
    experiment = tiny(tmp_path)
    task = contract.open_task(experiment)
    score = task.score

    def backwards(model: Any, batch: Any) -> Score:
        found = score(model, batch)
        return replace(found, outputs={name: each.flip(0) for name, each in found.outputs.items()})

    task.score = backwards  # type: ignore[method-assign]
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        contract.outputs_come_once_in_the_order_of_samples(experiment, task, contract.new_model(task))


class Product(nn.Module):
    """Multiplies weights, which are fractions: their sum over a batch has other last bits than one by one."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))


def weighted(experiment: Experiment, wrong: float = 0.0) -> Task:
    """A task whose loss is the sum of fractional weights."""
    task = contract.open_task(experiment)

    def loss(model: Product, batch: np.ndarray) -> Loss:
        weights = torch.from_numpy(batch).float() / 3 + 0.1
        count = float(weights.sum()) + wrong
        return Loss(
            total=(model.weight * weights).sum(), count=count, tokens=len(batch), sums=weights.sum()[None]
        )

    def score(model: Product, batch: np.ndarray) -> Score:
        total = loss(model, batch)
        return Score(sums=torch.tensor([total.total.item(), total.counted]).double())

    task.collate = lambda split, indices, device: indices  # type: ignore[method-assign]
    task.loss, task.score = loss, score  # type: ignore[method-assign, assignment]
    task.train_sums, task.score_sums = ("weight",), ("loss", "count")
    return task


def test_counts_of_fractional_weights_need_not_be_equal_to_the_last_bit(tmp_path: Path) -> None:
    experiment = tiny(tmp_path)
    for check in (contract.loss_adds_up_over_samples, contract.scores_add_up_over_batches):
        check(experiment, weighted(experiment), Product())


def test_counts_that_do_not_add_up_fail_the_check(tmp_path: Path) -> None:
    experiment = tiny(tmp_path)
    with pytest.raises(AssertionError, match="over single samples"):
        contract.loss_adds_up_over_samples(experiment, weighted(experiment, wrong=0.001), Product())


class Floor(Product):
    """A loss that falls from 1 + its floor to the floor."""

    def __init__(self, floor: float) -> None:
        super().__init__()
        self.floor = floor


def floored(experiment: Experiment, floor: float) -> Task:
    task = contract.open_task(experiment)

    def loss(model: Floor, batch: np.ndarray) -> Loss:
        total = len(batch) * (model.weight.square().sum() + model.floor)
        return Loss(total=total, count=float(len(batch)), tokens=len(batch), sums=torch.zeros(0))

    task.model = lambda: Floor(floor)  # type: ignore[method-assign]
    task.collate = lambda split, indices, device: indices  # type: ignore[method-assign]
    task.loss = loss  # type: ignore[method-assign, assignment]
    return task


def test_a_loss_that_cannot_reach_0_can_be_learnt_by_heart(tmp_path: Path) -> None:
    """As with label smoothing."""
    experiment = tiny(tmp_path)
    contract.few_samples_can_be_learnt_by_heart(experiment, floored(experiment, 0.5), Floor(0.5))
    with pytest.raises(AssertionError, match="fell from 3 to 2 only"):
        contract.few_samples_can_be_learnt_by_heart(experiment, floored(experiment, 2.0), Floor(2.0))


def test_a_tiny_learning_rate_of_the_experiment_is_no_fault_of_the_task(tmp_path: Path) -> None:
    experiment = tiny(tmp_path, "optimizer.lr=1e-7")
    contract.few_samples_can_be_learnt_by_heart(experiment, floored(experiment, 0.5), Floor(0.5))


def test_a_slow_machine_is_no_fault_of_the_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock takes 15 s, so that 20 s are over after one step."""
    experiment = tiny(tmp_path, "optimizer.lr=1e-7")
    task = floored(experiment, 0.5)
    monkeypatch.setattr("time.monotonic", count(step=15).__next__)
    contract.few_samples_can_be_learnt_by_heart(experiment, task, Floor(0.5))
    with pytest.raises(AssertionError, match="only, at learning rates from 1e-07 to"):
        contract.learnt_by_heart(experiment, task, seconds=20)


def test_a_loss_below_0_is_not_checked(tmp_path: Path) -> None:
    experiment = tiny(tmp_path)
    contract.few_samples_can_be_learnt_by_heart(experiment, floored(experiment, -2.0), Floor(-2.0))
