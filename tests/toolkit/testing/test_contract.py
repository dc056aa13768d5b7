"""The checks for tasks, applied to a task of an external workload."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.toolkit.support.tiny import tiny
from toolkit.task import Score
from toolkit.testing import check_task, contract


@pytest.mark.slow
def test_a_correct_task_passes_all_checks(tmp_path: Path) -> None:
    check_task(tiny(tmp_path / "data", "train.epochs=1"), tmp_path / "runs")


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
