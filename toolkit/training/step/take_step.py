"""take_step(): one step of training, and update(), its last part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from toolkit.config.library_arguments import OWN
from toolkit.data.order.sample_order import EpochPlan
from toolkit.distributed.process_group import Group
from toolkit.distributed.step_sync import StepSync, StepTotals
from toolkit.errors import TrainingDiverged
from toolkit.reliability.stop import Stop
from toolkit.run.phases import Phase
from toolkit.system.output.few import few
from toolkit.task import Loss
from toolkit.training.batch_workers import BatchSource, Request
from toolkit.training.context import TrainContext
from toolkit.training.schedule.learning_rate import lr_factor
from toolkit.training.step.check_weights import check_weights

#: Most numbers of a list that a message shows.
_SHOWN = 8


def take_step(
    context: TrainContext, sync: StepSync, plan: EpochPlan, position: int, stop: Stop
) -> StepTotals:
    """One update: micro-batches of this rank, control vector, reduction, optimizer step. Collective.

    Raises TrainingDiverged if the loss is not finite, or the previous update made weights that are not;
    RanksDiverged if only some ranks have such weights.
    """
    activity, first_row = context.activity, context.passes[0][0]

    def own_rows() -> np.ndarray:
        """Called as late as possible, so that a stop request leads to a save after this step."""
        return sync.local_rows(first_row, context.is_asked_to_stop(stop))

    def end_passes() -> None:
        # The host waits for its device before the passes end: faults of the device belong to the passes.
        sync.read_losses()
        activity.batch = None
        context.enter(Phase.COMMUNICATION)

    context.averages.start()
    context.reduction.start(own_rows, end_passes)
    for numbers in context.passes:
        _pass(context, sync, plan, position, numbers, last=numbers is context.passes[-1])
    totals = sync.combine(context.reduction.finish())
    if not totals.is_finite:
        check_weights(context)
        activity.batch = _samples_of(context, plan, position, totals.bad_rows)
        raise _loss_error(context, totals, activity.batch)
    if totals.count:
        context.averages.update()
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
    part = number // context.experiment.train.accumulation
    with reduction.micro_batch(last), context.averages.forward_pass(part, len(indices)):
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


def update(context: TrainContext, count: float) -> None:
    """Set the learning rate and step the optimizer. Collective if the ranks' devices differ.

    count  divisor of the summed gradients; with 0 (a step without samples), no weight changes
    """
    factor = _lr_factor(context)
    for group, peak in zip(context.state.optimizer.param_groups, context.peak_rates, strict=True):
        group["lr"] = peak * factor
    if count > 0:
        _step_optimizer(context, count)
    context.state.progress.step += 1


def _lr_factor(context: TrainContext) -> float:
    config, schedule, step = context.experiment.lr_scheduler, context.schedule, context.state.progress.step
    if config.kind == OWN:
        task: Any = context.task
        return float(task.schedule(step, schedule.total_steps))
    lr = context.experiment.optimizer.lr
    return lr_factor(config, step, schedule.total_steps, schedule.steps_per_epoch, lr)


def _step_optimizer(context: TrainContext, count: float) -> None:
    """Divide the summed gradients once by the global count, clip, step."""
    state, clip_norm = context.state, context.experiment.train.clip_norm
    state.scaler.unscale_(state.optimizer)
    # From the optimizer's lists: model.parameters() would walk through all modules.
    parameters = [each for group in state.optimizer.param_groups for each in group["params"]]
    torch._foreach_mul_([each.grad for each in parameters if each.grad is not None], 1.0 / count)
    if clip_norm is not None:
        used = set(parameters)
        # In the model's order, because the order changes the last bits of the norm.
        clip([each for each in state.model.parameters() if each in used], clip_norm, context.group)
    state.scaler.step(state.optimizer)
    state.scaler.update()


def clip(parameters: Sequence[nn.Parameter], largest: float, group: Group) -> None:
    """Clip the gradient to a norm, by the same factor on all ranks. Collective if their devices differ.

    The ranks hold the same gradient, but different kinds of GPUs sum its norm in different orders, and the
    weights would drift apart.
    """
    norm = nn.utils.get_total_norm([each.grad for each in parameters if each.grad is not None])
    nn.utils.clip_grads_with_norm_(parameters, largest, group.same(norm))
