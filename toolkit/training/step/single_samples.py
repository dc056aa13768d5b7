"""Passes of a single sample: BatchNorm may refuse them, and only the last step of an epoch may have some."""

from __future__ import annotations

import numpy as np

from toolkit.errors import UserError
from toolkit.training.context import TrainContext
from toolkit.training.step.dry_run import dry_run


def check_single_samples(context: TrainContext) -> None:
    """Raise UserError if a pass will have one sample only, and the model has no loss for it.

    Called before the first step, because the last one of an epoch may come hours later. Looks at batches of a
    number of samples only.
    """
    train, size = context.experiment.train, context.group.world.size
    if not context.averages or train.batch_size is None:
        return
    passes = sum(len(context.passes_of(rank, size)) for rank in range(size))
    # The last batch of an epoch; an empty one is a full one.
    samples = len(context.task.splits["train"]) % train.batch_size or train.batch_size
    if samples >= 2 * passes:
        return
    try:
        dry_run(context, np.zeros(1, dtype=np.int64))
    except ValueError as error:
        raise UserError(
            f"the last step of an epoch has {samples} samples in {passes} parts, so some parts have one "
            f"sample, which the model cannot normalise ({error}): choose another train.batch_size, or fewer "
            "train.logical_ranks"
        ) from error
