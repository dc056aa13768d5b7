"""An evaluation counts every sample once and is the same on any number of processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.toolkit.ranks import in_ranks
from tests.toolkit.tiny import SIZES, rows, tiny
from toolkit import distributed
from toolkit.config import Experiment
from toolkit.config.schema import Evaluation as Batches
from toolkit.config.schema import Train
from toolkit.data.batches import evaluation_plan
from toolkit.distributed import Group
from toolkit.evaluate import evaluate
from toolkit.rng import seed_everything
from toolkit.rundir import RunDir
from toolkit.tasks.base import Evaluation, task_class
from toolkit.world import World

ALONE = Group(World.single(), torch.device("cpu"))
FIVES = Batches(batch_size=5)


def evaluate_alone(experiment: Experiment, batch_size: int, precision: Any = None) -> Evaluation:
    task = task_class(experiment)(experiment)
    seed_everything(0)
    return evaluate(task, task.model(), "validation", ALONE, Batches(batch_size=batch_size), precision)


def evaluate_rank(
    world: World, experiment: Experiment, folder: Path, split: str, batch_size: int
) -> tuple[bytes, bytes]:
    task = task_class(experiment)(experiment)
    torch.set_num_threads(1)
    seed_everything(0)
    with distributed.join(RunDir(folder), world, Train(device="cpu")) as group:
        result = evaluate(task, task.model(), split, group, Batches(batch_size=batch_size), None)
    return result.sums.tobytes(), result.outputs.tobytes()


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    experiment = tiny(tmp_path_factory.mktemp("data"))
    task_class(experiment).prepare(experiment)
    return experiment


@pytest.mark.parametrize("batch_size", [5, 100])
def test_sums_and_outputs_are_the_same_bytes_for_1_2_and_3_processes(
    experiment: Experiment, tmp_path: Path, batch_size: int
) -> None:
    """23 samples: no number of processes divides them, and with batches of 100 only one has any."""
    answers = [
        answer
        for size in (1, 2, 3)
        for answer in in_ranks(size, evaluate_rank, experiment, tmp_path, "validation", batch_size)
    ]
    assert len(answers) == 6
    assert all(answer == answers[0] for answer in answers)


@pytest.mark.parametrize("batch_size", [1, 4, 23, 1000])
def test_every_sample_is_counted_once(experiment: Experiment, batch_size: int) -> None:
    result = evaluate_alone(experiment, batch_size)
    assert result.sums[1] == SIZES["validation"]
    assert result.sums[2:].sum() == SIZES["validation"]
    good = sum(label == "good" for _, label in rows("validation"))
    # Rows of the confusion matrix are the true labels, in order: bad, good.
    assert result.sums[2:].reshape(2, 2).sum(1).tolist() == [SIZES["validation"] - good, good]
    assert result.outputs.shape == (SIZES["validation"], 2)


def test_size_of_batches_changes_nothing_but_rounding(experiment: Experiment) -> None:
    one, all_at_once = evaluate_alone(experiment, 1), evaluate_alone(experiment, 1000)
    np.testing.assert_allclose(one.sums, all_at_once.sums, rtol=1e-5)
    np.testing.assert_allclose(one.outputs, all_at_once.outputs, rtol=1e-4, atol=1e-6)


def test_output_stands_in_the_row_of_its_sample(experiment: Experiment) -> None:
    task = task_class(experiment)(experiment)
    outputs = evaluate_alone(experiment, 4).outputs
    seed_everything(0)
    model = task.model().eval()
    for index in (0, 7, 22):
        batch = task.collate("validation", np.array([index]), torch.device("cpu"))
        np.testing.assert_allclose(outputs[index], task.score(model, batch).outputs[0].detach(), rtol=1e-4)


def test_dropout_rests_while_the_model_is_scored_and_not_after(experiment: Experiment) -> None:
    task = task_class(experiment)(experiment)
    model = task.model()
    first = evaluate(task, model, "validation", ALONE, FIVES, None)
    assert model.training
    assert evaluate(task, model, "validation", ALONE, FIVES, None).sums.tolist() == first.sums.tolist()


def test_bf16_is_close(experiment: Experiment) -> None:
    exact, rounded = evaluate_alone(experiment, 5), evaluate_alone(experiment, 5, torch.bfloat16)
    assert rounded.sums[1] == exact.sums[1]
    assert rounded.sums[0] == pytest.approx(exact.sums[0], rel=0.02)
    assert not np.array_equal(rounded.outputs, exact.outputs)


class Forgetful:
    """A plan of evaluation that leaves the last sample out."""

    def __init__(self, plan: Any) -> None:
        self.steps = plan.steps
        self._plan = plan

    def step(self, number: int) -> Any:
        return self._plan.step(number)[: 3 if number == 0 else None]


def test_sample_that_is_left_out_does_not_go_unnoticed(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "toolkit.evaluate.evaluation_plan",
        lambda settings, lengths: Forgetful(evaluation_plan(settings, lengths)),
    )
    with pytest.raises(AssertionError, match="exactly once"):
        evaluate_alone(experiment, 5)
