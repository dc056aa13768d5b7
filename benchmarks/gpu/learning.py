"""The small experiments of the tests, trained on a device; each function runs in a separate interpreter."""

from __future__ import annotations

import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from safetensors.torch import load_file

from tests.toolkit.support.tiny_training import Attempt, CountedStop, without_dropout
from tests.toolkit.workloads.every_task.test_task_contract import SAMPLES
from toolkit.config import Experiment
from toolkit.distributed.devices import choose_device
from toolkit.distributed.process_group import Group
from toolkit.distributed.step_sync import StepSync
from toolkit.reliability.stop import NeverStop
from toolkit.run.create_run import create_run
from toolkit.run.run_dir import WEIGHTS
from toolkit.system.world import World
from toolkit.task import task_class
from toolkit.training import worker
from toolkit.training.assembly.build_training import build_training
from toolkit.training.context import TrainContext
from toolkit.training.loop import plan_of
from toolkit.training.numerics.arithmetic import set_arithmetic
from toolkit.training.output.progress_display import Display
from toolkit.training.step.take_step import take_step

_STEPS = 10


def device() -> dict[str, Any]:
    """Return facts about the device and torch, and the kinds of experiments."""
    has_gpu = torch.cuda.is_available()
    return {
        "device": "cuda" if has_gpu else "cpu",
        "name": torch.cuda.get_device_name() if has_gpu else "the CPU",
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "nccl": ".".join(map(str, torch.cuda.nccl.version())) if has_gpu else None,
        "kinds": sorted(SAMPLES),
    }


def of_kind(kind: str, on: str, precisions: Sequence[str]) -> dict[str, float | str]:
    """Return the figures of one experiment by "figure: candidate"; for a failed one, its error as text."""
    measures: dict[str, Callable[[], float]] = {"loss: cpu": partial(_loss, kind, "cpu", "fp32")}
    for precision in precisions:
        measures[f"loss: {precision}"] = partial(_loss, kind, on, precision)
        measures[f"parameters: {precision}"] = partial(_changed_by_a_stop, kind, on, precision)
    if on == "cuda":
        measures["waits: fp32"] = partial(_waits, kind, on)
    return {name: _value_or_error(measure) for name, measure in measures.items()}


def _value_or_error(measure: Callable[[], float]) -> float | str:
    try:
        return measure()
    except Exception as error:
        traceback.print_exc()
        return f"failed: {type(error).__name__}: {error}".splitlines()[0]


def _loss(kind: str, on: str, precision: str) -> float:
    """Return the loss of the tenth step, without dropout: a GPU draws other numbers than the CPU."""
    with _training(kind, on, precision) as training:
        without_dropout(training.state.model)
        return _take(training, _STEPS)


def _waits(kind: str, on: str) -> float:
    """Return the number of torch's warnings about waits for the device in the third step."""
    with _training(kind, on, "fp32") as training:
        _take(training, 2)
        torch.cuda.set_sync_debug_mode("warn")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            _take(training, 1)
        torch.cuda.set_sync_debug_mode("default")
    return sum("synchronizing" in str(each.message) for each in caught)


def _changed_by_a_stop(kind: str, on: str, precision: str) -> float:
    """Return how many parameters differ between a whole run and a run that was stopped after three steps."""
    with tempfile.TemporaryDirectory() as name:
        experiment = _experiment(kind, Path(name), on, precision)
        whole = _trained(experiment, Path(name) / "whole", None)
        stopped = _trained(experiment, Path(name) / "stopped", 3)
    return sum(not torch.equal(whole[name], stopped[name]) for name in whole)


def _trained(experiment: Experiment, folder: Path, stop_after: int | None) -> dict[str, torch.Tensor]:
    """Train a run, stopped once if `stop_after` is given; return its last weights."""
    run = create_run(experiment, folder)
    attempts = [Attempt(stop_after=stop_after), Attempt()] if stop_after else [Attempt()]
    with patch("toolkit.training.attempt.finalize._report"):
        for attempt in attempts:
            worker.run_attempt(run, World.single(), CountedStop(attempt, 0))
    weights: dict[str, torch.Tensor] = load_file(run.last / WEIGHTS)
    return weights


def _experiment(kind: str, folder: Path, on: str, precision: str) -> Experiment:
    short = ("train.epochs=1", "train.reduction=fast")
    experiment = SAMPLES[kind](folder, f"train.device={on}", f"train.precision={precision}", *short)
    task_class(experiment).prepare(experiment)
    return experiment


@contextmanager
def _training(kind: str, on: str, precision: str) -> Iterator[TrainContext]:
    with tempfile.TemporaryDirectory() as name:
        experiment = _experiment(kind, Path(name), on, precision)
        set_arithmetic(experiment)
        group = Group(World.single(), choose_device(on))
        task = task_class(experiment)(experiment)
        run = create_run(experiment, Path(name) / "runs")
        training = build_training(run, experiment, task, group, Display())
        with closing(training.reduction):
            yield training


def _take(training: TrainContext, steps: int) -> float:
    """Take some steps of the first epochs; return the mean loss of the last one."""
    sync = StepSync(training.group.device, training.micro_batches, training.task.train_sums)
    for _ in range(steps):
        epoch, position = divmod(training.state.progress.step, training.schedule.steps_per_epoch)
        agreement = take_step(training, sync, plan_of(training, epoch), position, NeverStop())
    return agreement.loss / agreement.count
