"""TrainContext: the objects that the loop uses. Activity: the current work of a process."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch

from toolkit.checkpoint.state import TrainState
from toolkit.checkpoint.store import Checkpoints
from toolkit.config.schema import Experiment, Train
from toolkit.distributed.process_group import Group
from toolkit.distributed.reduction import Reduction, block, passes
from toolkit.distributed.running_averages import RunningAverages
from toolkit.reliability.fault_injection import Faults
from toolkit.reliability.quarantine import Quarantine
from toolkit.reliability.stop import Stop
from toolkit.run.attempts.attempt import Attempt
from toolkit.run.phases import Phase
from toolkit.run.records.step_records import StepRecords
from toolkit.run.run_dir import RunDir
from toolkit.task import Task
from toolkit.training.batch_workers import BatchSource, OnDemand
from toolkit.training.output.metrics_writer import MetricsWriter
from toolkit.training.schedule.due_steps import StepSchedule

#: Torch compiles a model once for each.
Use = Literal["training", "evaluation"]


@dataclass(slots=True)
class Activity:
    """The activity of this process; the watchdog's thread reads it.

    phase   the current phase, for failure records
    beats   grows with all work; if it stops growing, the process hangs
    step_s  seconds of the slowest of the latest steps
    batch   sample indices of the current forward pass
    uncompiled  what torch has yet to compile, at its first use: training, evaluation, both, or nothing
    """

    phase: Phase = Phase.START
    beats: int = 0
    step_s: float = 0.0
    batch: np.ndarray | None = None
    uncompiled: set[Use] = field(default_factory=set)

    def heartbeat(self) -> None:
        """Record that the process makes progress."""
        self.beats += 1

    def done(self, use: Use) -> None:
        """Record that the process has done a step of training, or a batch of an evaluation."""
        self.heartbeat()
        self.uncompiled.discard(use)

    @property
    def may_compile(self) -> bool:
        """Whether torch may be compiling the model now."""
        return ("evaluation" if self.phase is Phase.EVALUATION else "training") in self.uncompiled


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainContext:
    """The objects that the loop works with.

    attempt     None if training is not an attempt of a run, as in a replay
    faults      None if no faults are injected
    quarantine  the samples that are left out
    peak_rates  peak learning rate of each optimizer group; the schedule multiplies it
    passes      micro-batches that this process computes in a step, by forward pass
    averages    the model's running averages, such as those of BatchNorm
    precision   of autocast, the same on all ranks; None for none
    on_demand   makes a batch in this process
    batches     makes the batches of training
    """

    run: RunDir
    experiment: Experiment
    task: Task
    state: TrainState
    group: Group
    reduction: Reduction
    checkpoints: Checkpoints
    metrics_writer: MetricsWriter
    schedule: StepSchedule
    step_records: StepRecords
    peak_rates: Sequence[float]
    passes: Sequence[Sequence[int]]
    averages: RunningAverages
    precision: torch.dtype | None
    attempt: Attempt | None = None
    faults: Faults | None = None
    quarantine: Quarantine = field(default_factory=Quarantine)
    activity: Activity = field(default_factory=Activity)
    on_demand: BatchSource = field(default_factory=OnDemand)
    batches: BatchSource = field(default_factory=OnDemand)

    def enter(self, phase: Phase) -> None:
        """Begin a phase, and inject the faults that are due in it."""
        self.activity.phase = phase
        self.activity.heartbeat()
        if self.faults is not None:
            self.faults.at(phase, self.state.progress.step)

    def leave_if_replaced(self) -> None:
        """End this process if it was frozen and another one has continued the run."""
        if self.attempt is not None:
            self.attempt.leave_if_replaced()

    def is_asked_to_stop(self, stop: Stop) -> bool:
        """Whether this rank is asked to save and leave."""
        # Read before the seconds: the thread that saves may measure them in between.
        is_measured = self.checkpoints.is_measured
        # A save is done after one more step.
        seconds_to_save = self.activity.step_s + self.checkpoints.seconds
        return stop.reason_to_stop(seconds_to_save, is_measured=is_measured) is not None

    def autocast(self) -> AbstractContextManager[None]:
        """The context of a forward pass in this precision."""
        return torch.autocast(self.group.device.type, self.precision) if self.precision else nullcontext()

    @property
    def micro_batches(self) -> int:
        """Micro-batches of one step, over all ranks."""
        return self.experiment.train.micro_batches

    def without_quarantined(self, indices: np.ndarray) -> np.ndarray:
        """Drop the samples that are in quarantine in the current step."""
        return self.quarantine.without(indices, self.state.progress.step)

    def rank_of(self, micro_batch: int) -> int:
        """The rank that computes a micro-batch."""
        train, size = self.experiment.train, self.group.world.size
        blocks = (block(rank, size, train.logical_ranks) for rank in range(size))
        return next(rank for rank, own in enumerate(blocks) if micro_batch // train.accumulation in own)

    def computed_with(self, micro_batch: int) -> Sequence[int]:
        """The micro-batches of the forward pass that begins with this one, on any rank."""
        of_its_rank = self.passes_of(self.rank_of(micro_batch), self.group.world.size)
        return next(each for each in (*self.passes, *of_its_rank) if each[0] == micro_batch)

    def passes_of(self, rank: int, size: int) -> Sequence[Sequence[int]]:
        """The micro-batches that a rank of a world of this size computes in a step, by forward pass."""
        return passes_of(self.experiment.train, self.reduction, rank, size)


def passes_of(train: Train, reduction: Reduction, rank: int, size: int) -> Sequence[Sequence[int]]:
    """The micro-batches that a rank of a world of this size computes in a step, by forward pass."""
    return passes(rank, size, train.logical_ranks, train.accumulation, joined=reduction.joins_parts)
