"""The error for a loss that is not finite, and the samples that it names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from toolkit.data.order.sample_order import EpochPlan
from toolkit.distributed.step_sync import StepTotals
from toolkit.errors import TrainingDiverged
from toolkit.system.few import few
from toolkit.training.context import TrainContext

#: How many numbers of a long list a message shows.
_SHOWN = 8


def samples_of(
    context: TrainContext, plan: EpochPlan, position: int, rows: Sequence[int]
) -> np.ndarray | None:
    """The samples of the passes whose first micro-batches are `rows`, on whichever rank; None for no rows."""
    numbers = [number for row in rows for number in context.computed_with(row)]
    return context.without_quarantined(plan.micro_batches_of(position, numbers)) if numbers else None


def diverged(context: TrainContext, totals: StepTotals, samples: np.ndarray | None) -> TrainingDiverged:
    """The error for a loss that is not finite; every rank raises the same, with the same samples."""
    bad, step = totals.bad_rows, context.state.progress.step + 1
    what = f"the loss of step {step} is {totals.loss}"
    if samples is not None:
        what += f", in micro-batch {few(bad, _SHOWN)} of {context.micro_batches}"
        what += f" (samples {few(samples, _SHOWN)})"
    return TrainingDiverged(
        f"{what}: try a smaller optimizer.lr, train.clip_norm, or warm-up; "
        "train.quarantine leaves out samples that fail alone",
        rank=context.rank_of(bad[0]) if bad else None,
    )
