"""take_step(): one step of training. The functions below it follow in the order of its lines."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import torch

from toolkit.data.order.sample_order import EpochPlan
from toolkit.distributed.step_sync import StepSync, StepTotals
from toolkit.errors import TrainingDiverged
from toolkit.reliability.stop import Stop
from toolkit.run.phases import Phase
from toolkit.system.output.few import few
from toolkit.task import Loss
from toolkit.training.batch_workers import BatchSource, Request
from toolkit.training.context import TrainContext
from toolkit.training.step.update import update

#: Most numbers of a list that a message shows.
_SHOWN = 8


def take_step(
    context: TrainContext, sync: StepSync, plan: EpochPlan, position: int, stop: Stop
) -> StepTotals:
    """One update: micro-batches of this rank, control vector, reduction, optimizer step. Collective.

    Raises TrainingDiverged if the loss is not finite, or the previous update made weights that are not.
    """
    activity, first_row = context.activity, context.passes[0][0]
    # Called as late as possible, so that a stop request leads to a save after this step.
    context.reduction.start(
        lambda: sync.local_rows(first_row, context.is_asked_to_stop(stop), activity.step_s)
    )
    for numbers in context.passes:
        _pass(context, sync, plan, position, numbers, last=numbers is context.passes[-1])
    activity.batch = None
    context.enter(Phase.COMMUNICATION)
    totals = sync.combine(context.reduction.finish())
    if not totals.is_finite:
        trained = {name: each for name, each in context.state.model.named_parameters() if each.requires_grad}
        if not all(each.isfinite().all() for each in trained.values()):
            raise _weights_error(context, trained)
        activity.batch = _samples_of(context, plan, position, totals.bad_rows)
        raise _loss_error(context, totals, activity.batch)
    context.enter(Phase.OPTIMIZER)
    update(context, totals.count)
    return totals


def _pass(
    context: TrainContext,
    sync: StepSync,
    plan: EpochPlan,
    position: int,
    numbers: Sequence[int],
    *,
    last: bool,
) -> None:
    """Forward and backward pass of some micro-batches together, seeded by the number of the first one.

    Without samples nothing is computed, but a rank that must take part in the reduction computes a
    placeholder of weight zero.
    """
    number, reduction = numbers[0], context.reduction
    indices = context.without_quarantined(plan.micro_batches_of(position, numbers))
    context.activity.batch = indices
    with reduction.micro_batch(last):
        if len(indices):
            loss = _forward(context, number, indices, context.batches)
            sync.add(number, loss)
            _backward(context, loss.total)
        elif last and reduction.needs_backward:
            placeholder = plan.placeholder(context.quarantine.ids_at(context.state.progress.step))
            _backward(context, 0.0 * _forward(context, number, placeholder, context.on_demand).total)


def _forward(context: TrainContext, number: int, samples: np.ndarray, batches: BatchSource) -> Loss:
    """The loss of some samples, with the random numbers of the micro-batch with this number."""
    context.enter(Phase.DATA)
    request = request_of(context, context.state.progress.step, number, samples)
    batch = batches.take(context.task, request, context.group.device)
    context.enter(Phase.FORWARD)
    with context.autocast():
        loss = context.reduction.compute(context.task.loss, batch)
    return loss if context.faults is None else context.faults.inject_nan(loss)


def request_of(context: TrainContext, step: int, number: int, samples: np.ndarray) -> Request:
    """The batch of a pass: some samples, and the seed of the micro-batch with this number."""
    return Request("train", (context.experiment.seed, step, number), samples)


def _backward(context: TrainContext, total: torch.Tensor) -> None:
    context.enter(Phase.BACKWARD)
    context.state.scaler.scale(total).backward()


def _samples_of(
    context: TrainContext, plan: EpochPlan, position: int, rows: Sequence[int]
) -> np.ndarray | None:
    """The samples of the passes that begin with the micro-batches `rows`, on any rank; None for no rows."""
    numbers = [number for row in rows for number in context.computed_with(row)]
    return context.without_quarantined(plan.micro_batches_of(position, numbers)) if numbers else None


def _weights_error(context: TrainContext, trained: Collection[str]) -> TrainingDiverged:
    """Set checkpoints with weights that are not finite aside, so that none is resumed; return the error."""
    context.checkpoints.set_spoilt_aside(trained)
    return TrainingDiverged(
        f"after step {context.state.progress.step} weights are not finite: a gradient was not, as for the "
        "square root of 0, or optimizer.lr is much too large"
    )


def _loss_error(context: TrainContext, totals: StepTotals, samples: np.ndarray | None) -> TrainingDiverged:
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
