"""Training: what the loop works with, and how it ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import torch

from toolkit.attempts.ledger import Attempt
from toolkit.calendar import Calendar
from toolkit.checkpoint.store import Checkpoints
from toolkit.config.schema import Experiment
from toolkit.distributed import Group
from toolkit.failure.quarantine import Quarantine
from toolkit.faults import Faults
from toolkit.receipts import Receipts
from toolkit.recorder import Recorder
from toolkit.reduction import Reduction, block
from toolkit.rundir import RunDir
from toolkit.state import TrainState
from toolkit.tasks.base import Task

PRECISIONS = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}


class Outcome(Enum):
    """How training ended."""

    FINISHED = "finished"
    YIELDED = "yielded"

    @property
    def is_finished(self) -> bool:
        return self is Outcome.FINISHED


@dataclass(slots=True, kw_only=True)
class Training:
    """What the loop works with.

    phase        what this process is doing, for whoever has to explain a failure
    beats        grows with everything that it does: a number that stands still means that it hangs
    step_s       seconds of the slowest of the latest steps
    evaluation_s seconds of the latest evaluation of the validation set
    batch        sample ids of the micro-batch at work
    quarantine   the samples that are left out
    """

    run: RunDir
    experiment: Experiment
    task: Task
    state: TrainState
    group: Group
    reduction: Reduction
    checkpoints: Checkpoints
    recorder: Recorder
    calendar: Calendar
    receipts: Receipts
    faults: Faults | None = None
    attempt: Attempt | None = None
    phase: str = "start"
    beats: int = 0
    step_s: float = 0.0
    evaluation_s: float = 0.0
    batch: np.ndarray | None = None
    quarantine: Quarantine = field(default_factory=Quarantine)

    def enter(self, phase: str) -> None:
        """Say what this process does next. The tests' faults strike here."""
        self.phase = phase
        self.beats += 1
        if self.faults is not None:
            self.faults.at(phase, self.state.progress.step)

    def beat(self) -> None:
        """Say that this process is still at it."""
        self.beats += 1

    @property
    def lead_s(self) -> float:
        """Seconds that one more step and a save take, and the evaluation that is due in between."""
        step, calendar = self.state.progress.step, self.calendar
        # The step at work, and the next one: after that one it would be too late to leave before it.
        evaluates = calendar.evaluates_at(step + 1) or calendar.evaluates_at(step + 2)
        return self.step_s + (self.evaluation_s if evaluates else 0.0) + self.checkpoints.seconds

    @property
    def precision(self) -> torch.dtype | None:
        return PRECISIONS[self.experiment.train.precision]

    @property
    def micro_batches(self) -> int:
        """Micro-batches of one step, over all ranks."""
        return self.experiment.train.logical_ranks * self.experiment.train.accumulation

    def kept(self, indices: np.ndarray) -> np.ndarray:
        """The samples of these that are not in quarantine in the step at work."""
        return self.quarantine.without(indices, self.state.progress.step)

    def rank_of(self, micro_batch: int) -> int:
        """The rank that carries a micro-batch."""
        train, size = self.experiment.train, self.group.world.size
        blocks = (block(rank, size, train.logical_ranks) for rank in range(size))
        return next(rank for rank, own in enumerate(blocks) if micro_batch // train.accumulation in own)

    @property
    def own_micro_batches(self) -> range:
        """Those that this process carries."""
        world, accumulation = self.group.world, self.experiment.train.accumulation
        own = block(world.rank, world.size, self.experiment.train.logical_ranks)
        return range(own.start * accumulation, own.stop * accumulation)
