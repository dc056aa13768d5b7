"""A task on a pretended GPU: the numbers of the CPU, and how often the host waits for the device.

tests/toolkit/workloads/gpu does the same with every task of our workloads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.toolkit.gpu.device import CUDA, Device, pretended_device
from tests.toolkit.support.tiny import tiny
from toolkit.config import Experiment
from toolkit.distributed.process_group import Group
from toolkit.distributed.step_sync import StepSync
from toolkit.reliability.stop import NeverStop
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World
from toolkit.task import Task, lists_of, task_class
from toolkit.training.assembly.build_training import build_training
from toolkit.training.loop import plan_of
from toolkit.training.numerics.rng import seed_everything
from toolkit.training.output.progress_display import Display
from toolkit.training.step.take_step import take_step, update

CPU = torch.device("cpu")

#: Waits of the loop itself in each step: the control vector's numbers come to the host.
WAITS_OF_THE_LOOP = 1


Make = Callable[..., Experiment]


@pytest.fixture(scope="module")
def make() -> Make:
    """Makes a small experiment with its data in a folder."""
    return tiny


@pytest.fixture(scope="module")
def waits_of_a_batch() -> int:
    """Waits for the device in making a batch, forward and backward; there may only be fewer."""
    return 0


@pytest.fixture(scope="module")
def experiment(make: Make, tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    found = make(tmp_path_factory.mktemp("task"), "train.reduction=fast", "train.device=auto")
    task_class(found).prepare(found)
    return found


@pytest.fixture(scope="module")
def task(experiment: Experiment) -> Task:
    return task_class(experiment)(experiment)


@contextmanager
def deterministic_device() -> Iterator[Device]:
    """As train.deterministic asks for it: an operation without a deterministic kernel fails."""
    with pretended_device() as pretended:
        torch.use_deterministic_algorithms(True)
        try:
            yield pretended
        finally:
            torch.use_deterministic_algorithms(False)


@pytest.fixture
def device() -> Iterator[Device]:
    with deterministic_device() as pretended:
        yield pretended


def learnt_from(task: Task, model: torch.nn.Module, on: torch.device) -> tuple[float, list[np.ndarray]]:
    """Loss and gradients of a batch."""
    seed_everything(1)
    total = task.loss(model, task.collate("train", np.arange(8), on)).total
    total.backward()
    gradients = [p.grad.cpu().numpy() for p in model.parameters() if p.grad is not None]
    return total.item(), gradients


def test_loss_and_gradients_equal_those_of_the_cpu(task: Task) -> None:
    seed_everything(0)
    loss, gradients = learnt_from(task, task.model(), CPU)
    assert math.isfinite(loss)
    with deterministic_device():
        seed_everything(0)
        found, others = learnt_from(task, task.model().to(CUDA), CUDA)
    assert found == loss
    assert all(np.array_equal(*pair) for pair in zip(gradients, others, strict=True))


def test_scores_equal_those_of_the_cpu(task: Task) -> None:
    def score(on: torch.device) -> list[np.ndarray]:
        seed_everything(0)
        model = task.model().to(on).eval()
        with torch.no_grad():
            found = task.score(model, task.collate("test", np.arange(5), on))
        outputs = [found.outputs[name] for name in sorted(found.outputs)]
        return [found.sums.cpu().numpy(), *(lists_of(each).values for each in outputs)]

    on_cpu = score(CPU)
    with deterministic_device():
        on_gpu = score(CUDA)
    assert all(np.array_equal(*pair) for pair in zip(on_cpu, on_gpu, strict=True))


def test_batch_synchronizes_as_often_as_declared(waits_of_a_batch: int, task: Task, device: Device) -> None:
    model = task.model().to(CUDA)
    device.waits.clear()
    task.loss(model, task.collate("train", np.arange(8), CUDA)).total.backward()
    assert len(device.waits) == waits_of_a_batch, "\n".join(device.waits)


def test_a_step_synchronizes_at_most_as_often_as_its_batch_and_the_loop(
    waits_of_a_batch: int, experiment: Experiment, task: Task, device: Device, tmp_path: Path
) -> None:
    training = build_training(RunDir(tmp_path), experiment, task, Group(World.single(), CUDA), Display())
    sync = StepSync(CUDA, training.micro_batches, task.train_sums)
    plan = plan_of(training, 0)
    with closing(training.reduction):
        # The first step makes the optimizer's state.
        take_step(training, sync, plan, 0, NeverStop())
        device.waits.clear()
        take_step(training, sync, plan, 1, NeverStop())
    assert len(device.waits) <= waits_of_a_batch + WAITS_OF_THE_LOOP, "\n".join(device.waits)


def test_host_waits_for_its_own_device_in_the_backward_pass(
    experiment: Experiment, task: Task, device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device that hangs is then told from a peer that does, and an error has the samples of its batch."""
    training = build_training(RunDir(tmp_path), experiment, task, Group(World.single(), CUDA), Display())
    sync = StepSync(CUDA, training.micro_batches, task.train_sums)
    found: list[tuple[str, bool]] = []
    read = sync._numbers

    def numbers() -> list[list[float]]:
        found.append((training.activity.phase, training.activity.batch is not None))
        return read()

    monkeypatch.setattr(sync, "_numbers", numbers)
    with closing(training.reduction):
        take_step(training, sync, plan_of(training, 0), 0, NeverStop())
    assert found == [("backward", True)]


def test_process_without_samples_in_its_first_step_updates_in_fp16(
    make: Make, task: Task, device: Device, tmp_path: Path
) -> None:
    halved = make(tmp_path, "train.device=auto", "train.precision=fp16")
    training = build_training(RunDir(tmp_path), halved, task, Group(World.single(), CUDA), Display())
    for parameter in training.state.model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    with closing(training.reduction):
        update(training, 8.0)
    assert training.state.progress.step == 1
