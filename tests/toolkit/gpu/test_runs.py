"""Whole runs on GPUs that are pretended, with collectives like NCCL's: they end as on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.tiers import first_quick
from tests.toolkit.gpu.collectives import pretended_gpu
from tests.toolkit.support.ranks import in_ranks
from tests.toolkit.support.tiny import contents, metrics_lines, tiny
from tests.toolkit.support.tiny_training import Attempt, counted_stop
from toolkit.config import Experiment
from toolkit.distributed import process_group
from toolkit.distributed.step_sync import StepSync
from toolkit.files import read_json, read_json_lines
from toolkit.reliability.stop import NeverStop
from toolkit.run.create_run import create_run
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World
from toolkit.task import task_class
from toolkit.training import worker
from toolkit.training.assembly.build_training import build_training
from toolkit.training.loop import plan_of
from toolkit.training.output.progress_display import Display
from toolkit.training.step.take_step import take_step


def train_on_gpu(world: World, path: Path, attempt: Attempt) -> str:
    with (
        patch("toolkit.training.attempt.finalize._report"),
        pretended_gpu(),
        counted_stop(attempt, world.rank) as stop,
    ):
        return worker.run_attempt(RunDir(path), world, stop).value


def trained(folder: Path, *attempts: Attempt, overrides: tuple[str, ...]) -> RunDir:
    experiment = tiny(folder / "data", "train.device=auto", "train.epochs=1", *overrides)
    run = create_run(experiment, folder / f"runs_{len(list(folder.glob('runs_*')))}")
    for attempt in attempts:
        outcome = "finished" if attempt.stop_after is None else "yielded"
        assert in_ranks(attempt.size, train_on_gpu, run.path, attempt) == [outcome] * attempt.size
    return run


@pytest.mark.parametrize("reduction, precision", first_quick([("fast", "fp16"), ("exact", "bf16")]))
def test_two_ranks_on_gpus_finish_and_resume_equal_to_an_undisturbed_run(
    reduction: str, precision: str, tmp_path: Path
) -> None:
    """With fp16 the state of the gradient scaler survives the stop; the numbers are in single precision."""
    choices = (f"train.reduction={reduction}", f"train.precision={precision}")
    overrides = (*choices, "train.check_ranks_every=3")
    whole = trained(tmp_path, Attempt(size=2), overrides=overrides)
    assert read_json(whole.result)["state"] == "finished"
    attempts = read_json_lines(whole.attempts)
    assert all("cuda" in str(line.get("device", "cuda")) for line in attempts)
    stopped = trained(tmp_path, Attempt(size=2, stop_after=3), Attempt(size=2), overrides=overrides)
    assert contents(stopped)["checkpoint"] == contents(whole)["checkpoint"]
    assert metrics_lines(stopped) == metrics_lines(whole)


def waits_of_a_step(world: World, folder: Path, experiment: Experiment) -> list[str]:
    """What a rank waits for in a step, but for what the batch makes it wait for: nothing, of this task."""
    task = task_class(experiment)(experiment)
    with pretended_gpu() as device, process_group.join(RunDir(folder), world, experiment.train) as group:
        training = build_training(RunDir(folder), experiment, task, group, Display())
        sync = StepSync(group.device, training.micro_batches, task.train_sums)
        plan = plan_of(training, 0)
        with closing(training.reduction):
            take_step(training, sync, plan, 0, NeverStop())
            device.waits.clear()
            take_step(training, sync, plan, 1, NeverStop())
            waits = list(device.waits)
        group.barrier()
        return waits


def phases_of_a_step(world: World, folder: Path, experiment: Experiment) -> list[tuple[str, str]]:
    """The phases in which a rank reads its losses, and in which its backward pass ends."""
    task = task_class(experiment)(experiment)
    with pretended_gpu(), process_group.join(RunDir(folder), world, experiment.train) as group:
        training = build_training(RunDir(folder), experiment, task, group, Display())
        sync = StepSync(group.device, training.micro_batches, task.train_sums)
        found: list[tuple[str, str]] = []

        def noted(name: str, function: Callable[[], Any]) -> Any:
            found.append((name, training.activity.phase.value))
            return function()

        with (
            closing(training.reduction) as reduction,
            patch.object(sync, "_numbers", partial(noted, "read", sync._numbers)),
            patch.object(reduction, "finish", partial(noted, "finish", reduction.finish)),
        ):
            take_step(training, sync, plan_of(training, 0), 0, NeverStop())
        group.barrier()
        return found


def test_rank_waits_for_its_own_device_in_backward_and_for_others_in_communication(tmp_path: Path) -> None:
    """DDP lets the device wait for the other ranks before backward returns."""
    experiment = tiny(tmp_path / "data", "train.device=auto", "train.reduction=fast")
    task_class(experiment).prepare(experiment)
    expected = [("read", "backward"), ("finish", "communication")]
    assert in_ranks(2, phases_of_a_step, tmp_path / "run", experiment) == [expected] * 2


@pytest.mark.parametrize("reduction", first_quick(["fast", "exact"]))
def test_a_step_of_the_loop_synchronizes_twice(reduction: str, tmp_path: Path) -> None:
    """The losses come to the host, and what the ranks agree on; there may only be fewer."""
    experiment = tiny(tmp_path / "data", "train.device=auto", f"train.reduction={reduction}")
    task_class(experiment).prepare(experiment)
    for waits in in_ranks(2, waits_of_a_step, tmp_path / "run", experiment):
        assert len(waits) == 2, "\n".join(waits)
