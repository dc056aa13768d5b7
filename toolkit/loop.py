"""train(): the loop. Read `train` first; the rest is what its lines mean."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress

import numpy as np
import torch

from toolkit.comparison import compare_weights
from toolkit.config.schema import Experiment
from toolkit.control import Agreement, Control
from toolkit.data.batches import epoch_plan
from toolkit.data.plan import EpochPlan
from toolkit.errors import CheckpointError, TrainingDiverged
from toolkit.evaluate import evaluate
from toolkit.optim import lr_factor
from toolkit.rng import seed_everything
from toolkit.state import TrainState
from toolkit.stop import Stop
from toolkit.tasks.base import Loss
from toolkit.training import Outcome, Training

#: Numbers shown where a message lists some.
_SHOWN = 8


def train(training: Training, stop: Stop) -> Outcome:
    """Train to the end or until some rank is asked to stop, then leave a checkpoint. Collective.

    All ranks leave after the same step: the request rides on the step's control vector.
    Raises TrainingDiverged where the loss is not finite.
    """
    progress, calendar = training.state.progress, training.calendar
    control = Control(training.group.device, training.micro_batches, training.task.train_sums)
    plan, planned_epoch = None, -1
    # Done already where an attempt was killed between its last save and result.json.
    while not _is_finished(training):
        started = time.perf_counter()
        epoch, position = divmod(progress.step, calendar.steps_per_epoch)
        if epoch != planned_epoch:
            plan, planned_epoch = plan_of(training, epoch), epoch
        assert plan is not None
        _examine(training, plan)
        agreement = take_step(training, control, plan, position, stop)
        _count(training, agreement, plan, position)
        if training.attempt is not None:
            training.attempt.stepped()
        training.checkpoints.reserve(training.state)
        training.step_s = max(time.perf_counter() - started, 0.9 * training.step_s)
        if calendar.compares_at(progress.step):
            training.enter("communication")
            compare_weights(training.group, training.state.model, progress.step)
        if calendar.evaluates_at(progress.step):
            _validate(training)
        finished = _is_finished(training)
        _save_if_due(training, leaving=finished or agreement.stop)
        if agreement.stop and not finished:
            return Outcome.YIELDED
    return Outcome.FINISHED


def _save_if_due(training: Training, *, leaving: bool) -> None:
    """Leave a checkpoint where one is due. Rank 0 alone saves, so its clock may decide."""
    step, calendar, checkpoints = training.state.progress.step, training.calendar, training.checkpoints
    is_best = training.state.progress.best_step == step
    if not (leaving or calendar.evaluates_at(step) or calendar.saves_at(step) or checkpoints.is_due()):
        return
    training.enter("save")
    training.receipts.flush()
    checkpoints.save(training.state, needed=leaving or is_best)
    if leaving:
        # A stop leaves with the checkpoint before, where this one cannot be written (the events say so);
        # the end of training needs its own.
        with nullcontext() if _is_finished(training) else suppress(CheckpointError):
            checkpoints.wait()


def plan_of(training: Training, epoch: int) -> EpochPlan:
    """The plan of an epoch, counted from 0."""
    return epoch_plan(
        training.experiment.train,
        training.task.splits["train"].lengths,
        seed=training.experiment.seed,
        epoch=epoch,
        fingerprint=training.task.fingerprint,
    )


def take_step(training: Training, control: Control, plan: EpochPlan, position: int, stop: Stop) -> Agreement:
    """One update: own micro-batches, one control vector, one reduction, one optimizer step. Collective.

    Raises TrainingDiverged where the loss is not finite.
    """
    own = training.own_micro_batches
    # Made as late as the reduction can: where a stop is asked for, the save begins after this very step.
    training.reduction.start(
        lambda: control.rows(own.start, stop.reason(training.lead_s) is not None, training.step_s)
    )
    for number in own:
        _micro_batch(training, control, plan, position, number, last=number == own[-1])
    training.batch = None
    training.enter("communication")
    agreement = control.agreement(training.reduction.finish())
    if not agreement.is_finite:
        raise _diverged(training, agreement, plan, position)
    training.enter("optimizer")
    _update(training, agreement.count)
    return agreement


def _micro_batch(
    training: Training, control: Control, plan: EpochPlan, position: int, number: int, *, last: bool
) -> None:
    """Forward and backward of one micro-batch, with its own randomness."""
    reduction, state = training.reduction, training.state
    with reduction.leaf(last):
        indices = training.batch = training.kept(plan.micro_batch(position, number))
        idle = len(indices) == 0
        if idle and not (last and reduction.needs_backward):
            return
        training.enter("data")
        # Before the batch is made, so that a task may draw random numbers for it.
        seed_everything(training.experiment.seed, state.progress.step, number)
        sample = training.kept(plan.order[: training.quarantine.limit + 1])[:1] if idle else indices
        batch = training.task.collate("train", sample, training.group.device)
        training.enter("forward")
        loss = _loss(training, batch)
        if not idle:
            control.add(number, loss)
        training.enter("backward")
        # An idle rank takes part in the others' reduction with a sample of weight zero.
        state.scaler.scale(loss.total * 0.0 if idle else loss.total).backward()


def _diverged(training: Training, agreement: Agreement, plan: EpochPlan, position: int) -> TrainingDiverged:
    """What to raise for a loss that is not finite: the same on every rank, with the same samples."""
    bad, step = agreement.bad_rows, training.state.progress.step + 1
    what = f"the loss of step {step} is {agreement.loss}"
    if bad:
        training.batch = np.concatenate([training.kept(plan.micro_batch(position, row)) for row in bad])
        what += f", in micro-batch {_few(bad)} of {training.micro_batches} (samples {_few(training.batch)})"
    return TrainingDiverged(
        f"{what}: try a smaller optimizer.lr, train.clip_norm, or warm-up; "
        "train.quarantine leaves out samples that fail alone",
        rank=training.rank_of(bad[0]) if bad else None,
    )


def _few(numbers: Sequence[int] | np.ndarray) -> str:
    shown = ", ".join(map(str, numbers[:_SHOWN]))
    return shown + f" and {len(numbers) - _SHOWN} more" if len(numbers) > _SHOWN else shown


def _examine(training: Training, plan: EpochPlan) -> None:
    """Find out which of the samples that a step has failed on before fail alone. Collective."""
    step = training.state.progress.step
    if step not in training.quarantine.suspects:
        return
    training.phase = "data"
    split = training.task.splits["train"]
    buffers = [buffer.clone() for buffer in training.state.model.buffers()]
    training.quarantine.examine(
        training.run, training.group, split, step, plan.order, lambda sample: _try(training, sample)
    )
    for buffer, before in zip(training.state.model.buffers(), buffers, strict=True):
        buffer.copy_(before)


def _try(training: Training, sample: np.ndarray) -> float:
    """Loss of a sample and its gradient, on this rank alone; leaves no trace but in the buffers."""
    training.beat()
    model = training.state.model
    seed_everything(training.experiment.seed, training.state.progress.step)
    batch = training.task.collate("train", sample, training.group.device)
    with _autocast(training):
        loss = training.task.loss(model, batch)
    weights = [parameter for parameter in model.parameters() if parameter.requires_grad]
    torch.autograd.grad(loss.total, weights, allow_unused=True)
    return float(loss.total)


def _loss(training: Training, batch: object) -> Loss:
    with _autocast(training):
        loss = training.task.loss(training.reduction.module, batch)
    return loss if training.faults is None else training.faults.spoil(loss)


def _autocast(training: Training) -> AbstractContextManager[None]:
    precision = training.precision
    return torch.autocast(training.group.device.type, precision) if precision else nullcontext()


def _update(training: Training, count: float) -> None:
    """Divide the sum of the gradients once by the global count, clip, step."""
    experiment, state = training.experiment, training.state
    step, calendar = state.progress.step, training.calendar
    factor = lr_factor(experiment.lr_scheduler, step, calendar.total_steps, calendar.steps_per_epoch)
    for group in state.optimizer.param_groups:
        group["lr"] = experiment.optimizer.lr * factor
    if count > 0:
        _step_optimizer(experiment, state, count)
    state.progress.step += 1


def _step_optimizer(experiment: Experiment, state: TrainState, count: float) -> None:
    state.scaler.unscale_(state.optimizer)
    # The optimizer's lists: the model's own would be a walk through all of its modules.
    groups = state.optimizer.param_groups
    gradients = [p.grad for group in groups for p in group["params"] if p.grad is not None]
    torch._foreach_mul_(gradients, 1.0 / count)
    if experiment.train.clip_norm is not None:
        torch.nn.utils.clip_grad_norm_(state.model.parameters(), experiment.train.clip_norm)
    state.scaler.step(state.optimizer)
    state.scaler.update()


def _count(training: Training, agreement: Agreement, plan: EpochPlan, position: int) -> None:
    """Add the step to the receipts and the running metrics, and log them where due."""
    progress = training.state.progress
    added = {"loss": agreement.loss, "count": agreement.count, **agreement.sums}
    progress.sums = {name: progress.sums.get(name, 0.0) + value for name, value in added.items()}
    read = training.quarantine.without(plan.step(position), progress.step - 1)
    training.receipts.add(progress, read, agreement.loss)
    if agreement.count == 0:
        # All of the step's samples are in quarantine: nothing was learnt, and there is no mean.
        return
    training.recorder.count(progress.step, agreement, len(read))
    if training.calendar.logs_at(progress.step):
        sums = progress.sums
        metrics = {
            "loss": sums["loss"] / sums["count"],
            **training.task.train_metrics(sums, sums["count"]),
            "lr": training.state.optimizer.param_groups[0]["lr"],
        }
        training.recorder.train(progress.step, metrics)
        progress.sums = {}


def _validate(training: Training) -> None:
    """Score the validation set, and note whether this is the best so far."""
    experiment, progress = training.experiment, training.state.progress
    training.enter("evaluation")
    started = time.perf_counter()
    result = evaluate(
        training.task,
        training.state.model,
        "validation",
        training.group,
        experiment.evaluation,
        training.precision,
        on_batch=training.beat,
    )
    training.evaluation_s = time.perf_counter() - started
    metrics = training.task.metrics("validation", result)
    name, direction = experiment.evaluation.metric.split(":")
    value, best = metrics[name], progress.best_value
    if math.isfinite(value) and (best is None or (value < best if direction == "min" else value > best)):
        progress.best_value, progress.best_step, progress.since_best = value, progress.step, 0
    else:
        progress.since_best += 1
    training.recorder.evaluation("validation", progress.step, metrics)


def _is_finished(training: Training) -> bool:
    """Whether the last step is done, or patience is over."""
    progress, patience = training.state.progress, training.experiment.evaluation.patience
    if patience is not None and progress.since_best >= patience:
        return True
    return progress.step >= training.calendar.total_steps
