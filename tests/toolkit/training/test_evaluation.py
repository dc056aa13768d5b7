"""An evaluation scores every sample once, with equal results on any number of processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from tests.toolkit.support.ranks import assert_ended_by_rank_1, in_ranks, joined, run_ranks
from tests.toolkit.support.tiny import SIZES, rows, tiny
from toolkit.config import Experiment
from toolkit.config.schema import Evaluation as Batches
from toolkit.data.order.batches import evaluation_plan
from toolkit.data.ragged import Lists
from toolkit.distributed.process_group import Group
from toolkit.system.world import World
from toolkit.task import Evaluation, Ragged, task_class
from toolkit.testing.contract import evaluated
from toolkit.training.evaluation import evaluate, metrics_on_all_ranks
from toolkit.training.numerics.rng import seed_everything

ALONE = Group(World.single(), torch.device("cpu"))
FIVES = Batches(batch_size=5)


def evaluate_alone(experiment: Experiment, batch_size: int, precision: Any = None) -> Evaluation:
    task = task_class(experiment)(experiment)
    seed_everything(0)
    found = evaluate(task, task.model(), "validation", ALONE, Batches(batch_size=batch_size), precision)
    assert found is not None
    return found


def evaluate_rank(
    world: World, experiment: Experiment, folder: Path, split: str, batch_size: int
) -> tuple[dict[str, float], tuple[bytes, bytes] | None]:
    """The metrics, and the bytes of sums and outputs where a rank has them."""
    task = task_class(experiment)(experiment)
    torch.set_num_threads(1)
    seed_everything(0)
    with joined(world, folder) as group:
        result = evaluate(task, task.model(), split, group, Batches(batch_size=batch_size), None)
        metrics = metrics_on_all_ranks(task, split, result, group)
    return metrics, None if result is None else (result.sums.tobytes(), rows_of(result).tobytes())


def rows_of(result: Evaluation) -> np.ndarray:
    return result.outputs["log_probabilities"].rows


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    experiment = tiny(tmp_path_factory.mktemp("data"))
    task_class(experiment).prepare(experiment)
    return experiment


@pytest.mark.parametrize("batch_size", [5, 100])
def test_scores_are_bit_identical_for_1_2_and_3_processes(
    experiment: Experiment, tmp_path: Path, batch_size: int
) -> None:
    """23 samples: no number of processes divides them, and with batches of 100 only one has any."""
    (alone,) = in_ranks(1, evaluate_rank, experiment, tmp_path, "validation", batch_size)
    assert alone[1] is not None
    for size in (2, 3):
        first, *others = in_ranks(size, evaluate_rank, experiment, tmp_path, "validation", batch_size)
        assert first == alone
        assert others == [(alone[0], None)] * (size - 1)


def score_badly(world: World, experiment: Experiment, folder: Path) -> None:
    task = task_class(experiment)(experiment)
    if world.rank == 1:
        task.score = Mock(side_effect=ValueError("a bad batch"))  # type: ignore[method-assign]
    with joined(world, folder) as group:
        result = evaluate(task, task.model(), "validation", group, FIVES, None)
        metrics_on_all_ranks(task, "validation", result, group)


def test_exception_in_scoring_on_one_rank_stops_the_others(experiment: Experiment, tmp_path: Path) -> None:
    assert_ended_by_rank_1(run_ranks(3, score_badly, experiment, tmp_path), "a bad batch")


def test_outputs_are_collected_only_if_requested(experiment: Experiment) -> None:
    task = task_class(experiment)(experiment)
    result = evaluate(task, task.model(), "validation", ALONE, FIVES, None, with_outputs=False)
    assert not result.outputs
    assert task.metrics("validation", result)["loss"] > 0


def evaluate_values(experiment: Experiment, values: Callable[[list[int]], torch.Tensor | Ragged]) -> Lists:
    """The output of an evaluation whose batches have these values for their samples."""
    task = task_class(experiment)(experiment)
    score = task.score

    def collate(split: str, indices: np.ndarray, device: torch.device) -> Any:
        task.score = lambda model, batch: replace(  # type: ignore[method-assign]
            score(model, batch), outputs={"values": values(indices.tolist())}
        )
        return type(task).collate(task, split, indices, device)

    task.collate = collate  # type: ignore[method-assign]
    result = evaluate(task, task.model(), "validation", ALONE, FIVES, None)
    return result.outputs["values"]


def test_outputs_may_be_integer_lists_of_different_lengths(experiment: Experiment) -> None:
    """Sample i has the numbers i, i, …: i % 4 times."""
    lists = evaluate_values(experiment, lambda batch: Ragged.of([[i] * (i % 4) for i in batch]))
    assert lists.values.dtype == np.int64
    assert [ids.tolist() for ids in lists] == [[i] * (i % 4) for i in range(SIZES["validation"])]
    with pytest.raises(ValueError, match="0 to 3 numbers, expected equal lengths"):
        _ = lists.rows


@pytest.mark.parametrize(
    "first, others, expected",
    [
        (torch.int64, torch.float32, np.float64),
        (torch.float64, torch.int64, np.float64),
        (torch.int32, torch.int64, np.int64),
    ],
)
def test_types_of_the_outputs_may_differ_between_batches(
    experiment: Experiment, first: torch.dtype, others: torch.dtype, expected: type
) -> None:
    found = evaluate_values(
        experiment, lambda batch: torch.tensor(batch, dtype=first if 0 in batch else others)
    )
    assert found.values.dtype == expected
    assert found.values.tolist() == list(range(SIZES["validation"]))


def test_batch_of_empty_lists_does_not_change_the_type_of_an_output(experiment: Experiment) -> None:
    def values(batch: list[int]) -> torch.Tensor | Ragged:
        return Ragged.of([[i] for i in batch]) if 0 in batch else torch.zeros(len(batch), 0)

    found = evaluate_values(experiment, values)
    assert found.values.dtype == np.int64
    assert {i: each.tolist() for i, each in enumerate(found) if len(each)} == {i: [i] for i in found.values}


@pytest.mark.parametrize("batch_size", [1, 4, 23, 1000])
def test_every_sample_is_counted_once(experiment: Experiment, batch_size: int) -> None:
    result = evaluate_alone(experiment, batch_size)
    assert result.sums[1] == SIZES["validation"]
    # Of each label, in order: bad, good.
    right, support, predicted = result.sums[2:].reshape(3, 2)
    good = sum(label == "good" for _, label in rows("validation"))
    assert support.tolist() == [SIZES["validation"] - good, good]
    assert predicted.sum() == SIZES["validation"]
    assert (right <= np.minimum(support, predicted)).all()
    assert rows_of(result).shape == (SIZES["validation"], 2)


def test_output_is_in_the_row_of_its_sample(experiment: Experiment) -> None:
    task = task_class(experiment)(experiment)
    outputs = rows_of(evaluate_alone(experiment, 4))
    seed_everything(0)
    model = task.model().eval()
    for index in (0, 7, 22):
        batch = task.collate("validation", np.array([index]), torch.device("cpu"))
        (expected,) = task.score(model, batch).outputs["log_probabilities"].detach()
        np.testing.assert_allclose(outputs[index], expected, rtol=1e-4)


def test_dropout_is_off_while_scoring_and_on_again_afterwards(experiment: Experiment) -> None:
    task = task_class(experiment)(experiment)
    model = task.model()
    first = evaluated(task, model, "validation")
    assert model.training
    assert evaluated(task, model, "validation").sums.tolist() == first.sums.tolist()


def test_scores_in_bf16_are_close_to_fp32(experiment: Experiment) -> None:
    exact, rounded = evaluate_alone(experiment, 5), evaluate_alone(experiment, 5, torch.bfloat16)
    assert rounded.sums[1] == exact.sums[1]
    assert rounded.sums[0] == pytest.approx(exact.sums[0], rel=0.02)
    assert not np.array_equal(rows_of(rounded), rows_of(exact))


def test_sample_left_out_of_an_evaluation_raises(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "toolkit.training.evaluation.evaluation_plan",
        lambda settings, lengths: evaluation_plan(settings, lengths[:-1]),
    )
    with pytest.raises(AssertionError, match="exactly once"):
        evaluate_alone(experiment, 5)
