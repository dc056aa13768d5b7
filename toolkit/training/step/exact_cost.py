"""The cost of computing the logical ranks of a step one after the other, measured once per attempt.

Every forward and backward pass has a fixed cost. It is negligible in steps of many milliseconds; in short
steps it is most of the cost of `train.reduction: exact`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from toolkit.data.order.sample_order import EpochPlan
from toolkit.distributed.reduction import passes
from toolkit.training.context import TrainContext
from toolkit.training.step.dry_run import dry_run

#: Steps of an attempt before the measurement: the first ones are slower.
_FIRST, _LAST = 10, 20
#: In longer steps the fixed cost of a pass is negligible.
_LONGEST_STEP_S = 0.05
_ROUNDS = 3


@dataclass(slots=True)
class ExactCost:
    """Counts the steps of an attempt and measures before one of them.

    steps    steps of this attempt so far
    since    time at which the first of the timed steps began, in seconds
    """

    context: TrainContext
    steps: int = 0
    since: float = 0.0

    def measure_if_due(self, plan: EpochPlan, position: int) -> None:
        """On rank 0, record how much longer the passes of a step take than those of `fast`."""
        self.steps += 1
        if self.steps == _FIRST:
            self.since = time.perf_counter()
        attempt = self.context.attempt
        if self.steps != _LAST or attempt is None or self.context.passes == self._joined():
            return
        step_s = (time.perf_counter() - self.since) / (_LAST - _FIRST)
        if self.context.group.world.is_main and step_s < _LONGEST_STEP_S:
            try:
                exact_s = self._extra_s(plan, position)
            except torch.OutOfMemoryError:
                # The larger pass does not fit, so `fast` is no choice for this run, which trains on.
                torch.cuda.empty_cache()
                return
            attempt.noted(exact_s=round(exact_s, 6), exact_share=round(min(1.0, exact_s / step_s), 3))

    def _joined(self) -> Sequence[Sequence[int]]:
        """The passes of `fast`."""
        train, world = self.context.experiment.train, self.context.group.world
        return passes(world.rank, world.size, train.logical_ranks, train.accumulation, joined=True)

    def _extra_s(self, plan: EpochPlan, position: int) -> float:
        """Seconds that the passes of a step take longer than those of `fast`."""
        separate_s, joined_s = (
            min(self._seconds(plan, position, numbers) for _ in range(_ROUNDS))
            for numbers in (self.context.passes, self._joined())
        )
        return max(0.0, separate_s - joined_s)

    def _seconds(self, plan: EpochPlan, position: int, numbers: Sequence[Sequence[int]]) -> float:
        """Seconds for some passes, each given by its micro-batches."""
        found = (plan.micro_batches_of(position, of_pass) for of_pass in numbers)
        samples = [self.context.without_quarantined(each) for each in found]
        started = time.perf_counter()
        for each in samples:
            if len(each):
                dry_run(self.context, each)
        return time.perf_counter() - started
