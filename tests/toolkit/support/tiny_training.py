"""Training the tiny experiment in forked ranks, disturbed at will."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from tests.toolkit.support.ranks import in_ranks
from toolkit.config import Experiment
from toolkit.run.create_run import create_run
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World
from toolkit.training import worker
from toolkit.training.assembly.open_task import open_task
from toolkit.training.evaluation import evaluate


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt of a run.

    size                 processes
    stop_after           steps until the ranks in `ranks` are asked to stop; None for never
    stop_in_batch        of all evaluations together, the batch of a rank before which it is; None for never
    stop_in_preparation  whether they are asked while data is prepared
    kill                 whether these ranks are killed with -9 instead
    """

    size: int = 1
    stop_after: int | None = None
    stop_in_batch: int | None = None
    stop_in_preparation: bool = False
    ranks: Sequence[int] = (0,)
    kill: bool = False


@dataclass(slots=True)
class CountedStop:
    """A Stop that asks from the n-th step of this attempt on, the n-th batch of evaluations, or before."""

    attempt: Attempt
    rank: int
    steps: int = field(default=0)
    batches: int = field(default=0)
    is_evaluating: bool = False
    is_preparing: bool = False

    def reason_to_stop(self, lead_s: float, *, is_measured: bool = True) -> str | None:
        if self.is_preparing:
            pass
        elif self.is_evaluating:
            self.batches += 1
        else:
            self.steps += 1
        if self.rank not in self.attempt.ranks or not self._is_time():
            return None
        if self.attempt.kill:
            # What was to be saved before lies on the disk then, however slow that is.
            for thread in threading.enumerate():
                if thread.name == "checkpoint":
                    thread.join()
            os.kill(os.getpid(), signal.SIGKILL)
        return "asked by a test"

    def _is_time(self) -> bool:
        if self.is_preparing or self.attempt.stop_in_preparation:
            return self.attempt.stop_in_preparation
        limits = (self.attempt.stop_after, self.steps), (self.attempt.stop_in_batch, self.batches)
        return any(limit is not None and count >= limit for limit, count in limits)

    def evaluate(self, *arguments: Any, **options: Any) -> Any:
        """evaluate(), in which batches are counted."""
        self.is_evaluating = True
        try:
            return evaluate(*arguments, **options)
        finally:
            self.is_evaluating = False


@contextmanager
def counted_stop(attempt: Attempt, rank: int) -> Iterator[CountedStop]:
    """A Stop for one rank, which counts nothing while data is prepared."""
    stop = CountedStop(attempt, rank)

    def uncounted(*arguments: Any) -> Any:
        stop.is_preparing = True
        try:
            return open_task(*arguments)
        finally:
            stop.is_preparing = False

    with patch("toolkit.training.attempt.stages.open_task", uncounted):
        yield stop


def train_rank(world: World, path: Path, attempt: Attempt) -> str:
    """Train as one rank."""
    # Drawing takes longer than all of this training, and the report has tests of its own.
    with (
        counted_stop(attempt, world.rank) as stop,
        patch("toolkit.training.attempt.finalize._report"),
        patch("toolkit.training.evaluation.evaluate", stop.evaluate),
    ):
        return worker.run_attempt(RunDir(path), world, stop).value


class Lab:
    """Runs of the tiny experiment; each combination is trained once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._finished: dict[Any, RunDir] = {}

    def start(self, experiment: Experiment) -> RunDir:
        """A new run's folder; every one has a parent of its own."""
        return create_run(experiment, self.folder / f"runs_{len(list(self.folder.glob('runs_*')))}")

    def train(self, experiment: Experiment, *attempts: Attempt) -> RunDir:
        """Train to the end through these attempts, all but the last one disturbed."""
        key = (repr(experiment), repr(attempts))
        if key not in self._finished:
            run = self.start(experiment)
            for attempt in attempts[:-1]:
                self.go_on(run, attempt, "yielded")
            self.go_on(run, attempts[-1], "finished")
            self._finished[key] = run
        return self._finished[key]

    def go_on(self, run: RunDir, attempt: Attempt, outcome: str) -> None:
        """Start a run once, and check how that ends."""
        assert in_ranks(attempt.size, train_rank, run.path, attempt) == [outcome] * attempt.size


def without_dropout(model: torch.nn.Module) -> None:
    """Switch off dropout of modules, and of functions that modules call."""
    for module in model.modules():
        if isinstance(module, torch.nn.modules.dropout._DropoutNd):
            module.p = 0.0
        for name in ("dropout", "_dropout", "dropout_prob"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)
