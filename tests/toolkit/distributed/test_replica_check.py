"""Ranks with different data or weights are found and named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import nn

from tests.tiers import first_quick
from tests.toolkit.support.ranks import in_ranks, joined, run_ranks
from tests.toolkit.support.tiny import tiny
from tests.toolkit.support.tiny_training import Lab
from toolkit.distributed import replica_check
from toolkit.distributed.replica_check import check_same_data, compare_weights, weights_crc32
from toolkit.distributed.step_sync import StepTotals
from toolkit.errors import DataError, RanksDiverged
from toolkit.files import read_json
from toolkit.reliability.restart_policy import after_failure
from toolkit.reliability.stop import StopFlag
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World
from toolkit.training import loop, worker
from toolkit.training.context import TrainContext
from toolkit.training.step.take_step import take_step


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5))


def flip_a_bit(tensor: torch.Tensor, byte: int = 0) -> None:
    """Flip a bit, as faulty memory may."""
    with torch.no_grad():
        tensor.view(-1).view(torch.uint8)[byte] ^= 1


def test_checksum_depends_on_every_bit_of_parameters_and_buffers() -> None:
    expected = weights_crc32(model())
    assert weights_crc32(model()) == expected
    for name in ("0.weight", "0.bias", "1.running_mean", "1.num_batches_tracked"):
        other = model()
        flip_a_bit(other.state_dict()[name])
        assert weights_crc32(other) != expected, name


def test_checksum_ignores_non_persistent_buffers() -> None:
    other = model()
    other.register_buffer("cache", torch.arange(4.0), persistent=False)
    assert weights_crc32(other) == weights_crc32(model())


def test_checksum_reads_weights_of_any_dtype_and_layout() -> None:
    module = nn.Module()
    module.narrow = nn.Parameter(torch.ones(4, 3, dtype=torch.bfloat16).t())
    module.flag = nn.Buffer(torch.tensor(True))
    module.empty = nn.Buffer(torch.zeros(0))
    before = weights_crc32(module)
    with torch.no_grad():
        module.narrow[0, 3] = 2
    assert weights_crc32(module) != before


def test_weights_with_nan_are_equal_if_their_bits_are() -> None:
    one, same, other = model(), model(), model()
    for each in (one, same, other):
        each.state_dict()["0.weight"].fill_(torch.nan)
    flip_a_bit(other.state_dict()["0.weight"])
    assert weights_crc32(one) == weights_crc32(same) != weights_crc32(other)


def compare_rank(world: World, folder: Path, odd: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    """Compare after flipping a bit on some ranks, on each another one."""
    with joined(world, folder) as group:
        own = model()
        if world.rank in odd:
            flip_a_bit(own.state_dict()["0.weight"], byte=world.rank)
        try:
            compare_weights(group, own, 500)
        except RanksDiverged as error:
            return str(error), error.ranks
        return "", ()


@pytest.mark.parametrize(
    "size, odd, words, ranks",
    [
        (2, (), "", ()),
        (3, (1,), "after step 500 the weights of rank 1 differ from the others'", (1,)),
        (4, (0, 2), "after step 500 the weights of rank 0, 2 differ from the others'", (0, 2)),
        (2, (1,), "after step 500 the ranks hold different weights, with no majority", ()),
        (3, (0, 1, 2), "after step 500 the ranks hold different weights, with no majority", ()),
    ],
)
def test_all_ranks_name_the_ranks_that_differ_from_the_majority(
    tmp_path: Path, size: int, odd: tuple[int, ...], words: str, ranks: tuple[int, ...]
) -> None:
    assert in_ranks(size, compare_rank, tmp_path, odd) == [(words, ranks)] * size


def test_single_process_computes_no_checksum(tmp_path: Path) -> None:
    with patch.object(replica_check, "weights_crc32", side_effect=AssertionError):
        assert compare_rank(World.single(), tmp_path, (0,)) == ("", ())


def make_nan(tensor: torch.Tensor) -> None:
    tensor.data.fill_(torch.nan)


def train_rank(
    world: World, path: Path, after: int, fault: Callable[[torch.Tensor], None], odd: int = 1
) -> str:
    """Train; a fault changes a weight of one rank after this step."""

    def step_and_fail(context: TrainContext, *arguments: Any) -> StepTotals:
        totals = take_step(context, *arguments)
        if world.rank == odd and context.state.progress.step == after:
            fault(next(iter(context.state.model.parameters())))
        return totals

    with patch.object(loop, "take_step", step_and_fail), patch("toolkit.training.attempt.finalize._report"):
        return worker.run_attempt(RunDir(path), world, StopFlag()).value


@pytest.mark.parametrize(
    "every, flipped, found, left", first_quick([(4, 5, 8, [4]), (2, 6, 6, [4]), (500, 13, 16, [])])
)
def test_diverged_ranks_stop_training_keep_only_compared_weights_and_blame_the_host(
    lab: Lab, every: int, flipped: int, found: int, left: list[int]
) -> None:
    """The last steps are compared too. Without any comparison before, the run starts again from scratch."""
    experiment = tiny(lab.folder, f"train.check_ranks_every={every}", "checkpoint.every_steps=1")
    run = lab.start(experiment)
    ended = run_ranks(3, train_rank, run.path, flipped, flip_a_bit)
    assert all(end.error.startswith("RanksDiverged") for end in ended)
    failure = read_json(run.failure)
    assert (failure["class"], failure["rank"], failure["step"]) == ("ranks_diverged", 1, found)
    assert failure["blamed"] == failure["host"]
    assert run.checkpoint_steps()[-1:] == left
    assert after_failure(run, experiment).action == "retry"


@pytest.mark.parametrize(
    "spoilt, odd, compared", first_quick([(8, 1, 4), (16, 1, 12), (16, 0, 12), (11, 1, 8), (11, 0, 8)])
)
def test_weights_of_one_rank_that_are_not_finite_blame_its_host(
    lab: Lab, spoilt: int, odd: int, compared: int
) -> None:
    """Evaluations are after the steps 4, 8, …, 16. The loss of step 12 shows what step 11 has spoilt."""
    experiment = tiny(lab.folder, "train.check_ranks_every=4", "checkpoint.every_steps=1")
    run = lab.start(experiment)
    ended = run_ranks(3, train_rank, run.path, spoilt, make_nan, odd)
    assert [end.error.partition(":")[0] for end in ended] == ["RanksDiverged"] * 3
    failure = read_json(run.failure)
    assert (failure["class"], failure["rank"], failure["step"]) == ("ranks_diverged", odd, spoilt)
    assert failure["blamed"] == failure["host"]
    assert 0 < run.checkpoint_steps()[-1] <= compared


@pytest.mark.parametrize("spoilt", first_quick([8, 16, 11]))
def test_all_ranks_end_alike_if_one_is_spoilt_and_none_are_compared(lab: Lab, spoilt: int) -> None:
    run = lab.start(tiny(lab.folder, "train.check_ranks_every=null"))
    ended = run_ranks(3, train_rank, run.path, spoilt, make_nan)
    (error,) = {end.error for end in ended}
    assert error.startswith(f"TrainingDiverged: after step {spoilt} weights are not finite")


# -- data


def compare_data(world: World, folder: Path) -> None:
    with joined(world, folder) as group:
        check_same_data("the same", group)
        with pytest.raises(DataError, match=r"rank 1 on .* differ from those of rank 0"):
            check_same_data(f"in the order of rank {world.rank}", group)


def test_ranks_with_different_data_are_refused(tmp_path: Path) -> None:
    in_ranks(2, compare_data, tmp_path)
