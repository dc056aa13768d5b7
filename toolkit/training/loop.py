"""train(): the loop. Read `train` first; the functions below it follow in the order of its lines."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial

import numpy as np

from toolkit.data.order.batches import epoch_plan
from toolkit.data.order.sample_order import EpochPlan
from toolkit.distributed.step_sync import StepSync, StepTotals
from toolkit.errors import CheckpointError, UserError
from toolkit.reliability.stop import Stop, StoppedEarly
from toolkit.run.attempts.outcome import Outcome
from toolkit.run.phases import Phase
from toolkit.training.batch_workers import Ahead, BatchSource, Request
from toolkit.training.context import TrainContext
from toolkit.training.evaluation import score_split
from toolkit.training.step.check_weights import check_weights, compare_ranks
from toolkit.training.step.counters import Counters
from toolkit.training.step.dry_run import dry_run
from toolkit.training.step.exact_cost import ExactCost
from toolkit.training.step.take_step import request_of, take_step

log = logging.getLogger("toolkit")


def train(context: TrainContext, stop: Stop) -> Outcome:
    """Train to the end, or until any rank is asked to stop; save a checkpoint then. Collective.

    All ranks leave after the same step, because the control vector of the step carries the request, or
    between the same two batches of an evaluation. The next attempt then starts with that evaluation.
    Raises TrainingDiverged if the loss, or the weights at an evaluation, are not finite.
    """
    workers = context.experiment.train.workers
    batches: BatchSource = context.on_demand
    if workers:
        batches = Ahead(workers, partial(_requests_left, context))
    with closing(batches):
        return _train(replace(context, batches=batches), stop)


def _train(context: TrainContext, stop: Stop) -> Outcome:
    sync = StepSync(context.group.device, context.micro_batches, context.task.train_sums)
    cost = ExactCost(context)
    if context.state.progress.awaits_evaluation:
        outcome = _repeat_evaluation(context, stop)
        if outcome is not None:
            return outcome
    if context.schedule.compare_every is not None and context.group.world.size > 1:
        # All ranks begin with the same weights.
        context.checkpoints.compared = context.state.progress.step
    counters = Counters(context)
    for plan, position in _steps_left(context):
        started = time.perf_counter()
        _examine_suspects(context, plan)
        cost.measure_if_due(plan, position)
        totals = take_step(context, sync, plan, position, stop)
        context.activity.done("training")
        counters.look()
        _record_step(context, totals, plan.step(position))
        context.checkpoints.reserve(context.state)
        # The duration of the slowest of the latest steps.
        context.activity.step_s = max(time.perf_counter() - started, 0.9 * context.activity.step_s)
        if context.schedule.evaluates_at(context.state.progress.step):
            _evaluate(context, stop)
        outcome = _outcome(context, is_asked=totals.stop)
        _compare_weights_if_due(context, outcome)
        _save_if_due(context, outcome)
        if outcome is not None:
            return outcome
    # An earlier attempt did the last step and was killed before it wrote result.json.
    return Outcome.FINISHED


def _requests_left(context: TrainContext) -> Iterator[Request]:
    """Yield the requests of this rank for the steps that are not done."""
    for step, (plan, position) in enumerate(_steps_left(context), start=context.state.progress.step):
        for numbers in context.passes:
            samples = context.quarantine.without(plan.micro_batches_of(position, numbers), step)
            if len(samples):
                yield request_of(context, step, numbers[0], samples)


def _repeat_evaluation(context: TrainContext, stop: Stop) -> Outcome | None:
    """Repeat the evaluation that a stop interrupted; return how training ends, None if it continues."""
    _evaluate(context, stop)
    outcome = _outcome(context, is_asked=False)
    if outcome is not Outcome.YIELDED:
        # The checkpoint of this step was saved without the score.
        _save(context, outcome, needed=True, replaces=True)
    return outcome


def _steps_left(context: TrainContext) -> Iterator[tuple[EpochPlan, int]]:
    """Yield the steps that are not done: the plan of the epoch, and the position of the step in it."""
    if _is_finished(context):
        return
    done, steps_per_epoch = context.state.progress.step, context.schedule.steps_per_epoch
    for epoch in range(done // steps_per_epoch, context.schedule.epochs):
        plan = plan_of(context, epoch)
        for position in range(max(0, done - epoch * steps_per_epoch), steps_per_epoch):
            yield plan, position


def plan_of(context: TrainContext, epoch: int) -> EpochPlan:
    """The plan of an epoch, counted from 0."""
    return epoch_plan(
        context.experiment.train,
        context.task.splits["train"].lengths,
        seed=context.experiment.seed,
        epoch=epoch,
        fingerprint=context.task.fingerprint,
    )


def _examine_suspects(context: TrainContext, plan: EpochPlan) -> None:
    """If this step has failed before, find the samples that fail on their own. Collective."""
    step = context.state.progress.step
    if step not in context.quarantine.suspects:
        return
    context.activity.phase = Phase.DATA
    split = context.task.splits["train"]
    context.quarantine.examine(context.run, context.group, split, step, plan.order, partial(dry_run, context))


def _record_step(context: TrainContext, totals: StepTotals, samples: np.ndarray) -> None:
    """Add the step to the step records and the running metrics, and log the metrics if due.

    samples  all samples of the step, on all ranks, before any are left out
    """
    context.leave_if_replaced()
    progress = context.state.progress
    added = {"loss": totals.loss, "count": totals.count, **totals.sums}
    progress.sums = {name: progress.sums.get(name, 0.0) + value for name, value in added.items()}
    read = context.quarantine.without(samples, progress.step - 1)
    progress.chain = context.step_records.add(progress.step, progress.chain, read, totals.loss)
    # If all samples of a step are in quarantine, there is no mean and no update.
    if totals.count:
        context.metrics_writer.count(progress.step, totals, len(read))
    _log_metrics_if_due(context)
    if context.attempt is not None:
        context.attempt.stepped()


def _log_metrics_if_due(context: TrainContext) -> None:
    """Write the means since the last line of training metrics, if a line is due."""
    progress, sums = context.state.progress, context.state.progress.sums
    if not context.schedule.logs_at(progress.step) or not sums["count"]:
        return
    metrics = {
        "loss": sums["loss"] / sums["count"],
        **context.task.train_metrics(sums, sums["count"]),
        "lr": context.state.optimizer.param_groups[0]["lr"],
        "count": sums["count"],
    }
    context.metrics_writer.train(progress.step, metrics)
    progress.sums = {}


def _compare_weights_if_due(context: TrainContext, outcome: Outcome | None) -> None:
    """Compare the ranks' weights if that is due. Collective.

    At a stop nothing is compared before the save: a large model may take more seconds than are left.
    """
    step, checkpoints = context.state.progress.step, context.checkpoints
    is_last = outcome is Outcome.FINISHED
    if outcome is Outcome.YIELDED or checkpoints.compared is None:
        return
    if context.schedule.compares_at(step, is_last=is_last):
        compare_ranks(context)
        checkpoints.compared = step


def _evaluate(context: TrainContext, stop: Stop) -> None:
    """Score the validation set and update the best step, or record that a stop interrupted it. Collective.

    Raises TrainingDiverged or RanksDiverged if the loss is not finite because weights are not.
    """
    progress, evaluation = context.state.progress, context.experiment.evaluation
    context.enter(Phase.EVALUATION)
    try:
        needs_outputs = context.task.metrics_need_outputs("validation")
        with context.metrics_writer.untimed():
            _, metrics = score_split(context, stop, "validation", with_outputs=needs_outputs)
    except StoppedEarly:
        progress.awaits_evaluation = True
        return
    progress.awaits_evaluation = False
    if not math.isfinite(metrics.get("loss", math.nan)):
        # The next step would find bad weights only after they are saved, and the last step has none.
        check_weights(context)
    name, goal = evaluation.metric.split(":")
    if name not in metrics:
        raise UserError(
            f"evaluation.metric: {name} has no value on the validation set, which has "
            f"{', '.join(metrics) or 'none'}; are all weights 0?"
        )
    progress.judge(metrics[name], metrics["loss"], goal)
    context.leave_if_replaced()
    context.metrics_writer.evaluation("validation", progress.step, metrics)


def _outcome(context: TrainContext, *, is_asked: bool) -> Outcome | None:
    """Return the outcome if training ends after this step; None if it continues.

    is_asked  whether the step's control vector carried a request to stop
    """
    if context.state.progress.awaits_evaluation:
        return Outcome.YIELDED
    if _is_finished(context):
        if context.state.progress.step < context.schedule.total_steps:
            log.info("training stops early (evaluation.patience: %d)", context.experiment.evaluation.patience)
        return Outcome.FINISHED
    return Outcome.YIELDED if is_asked else None


def _is_finished(context: TrainContext) -> bool:
    """Whether the last step is done, or patience has run out."""
    progress, patience = context.state.progress, context.experiment.evaluation.patience
    if patience is not None and progress.since_best >= patience:
        return True
    return progress.step >= context.schedule.total_steps


def _save_if_due(context: TrainContext, outcome: Outcome | None) -> None:
    """Save a checkpoint if one is due; before training ends, wait until it is written.

    Only rank 0 saves, so it may decide by its own timer.
    """
    step, schedule, checkpoints = context.state.progress.step, context.schedule, context.checkpoints
    leaves, is_best = outcome is not None, context.state.progress.best_step == step
    if not (leaves or schedule.evaluates_at(step) or schedule.saves_at(step) or checkpoints.is_due()):
        return
    _save(context, outcome, needed=leaves or is_best)


def _save(context: TrainContext, outcome: Outcome | None, *, needed: bool, replaces: bool = False) -> None:
    checkpoints = context.checkpoints

    def save() -> None:
        checkpoints.save(context.state, needed=needed, replaces=replaces)
        if outcome is Outcome.FINISHED:
            checkpoints.wait()
        elif outcome is Outcome.YIELDED:
            # events.jsonl records a failed save; the run then resumes from the checkpoint before it.
            with suppress(CheckpointError):
                checkpoints.wait()

    context.enter(Phase.SAVE)
    context.step_records.flush()
    # An attempt that continues from here writes no earlier lines.
    context.metrics_writer.write_waiting()
    if needed:
        # Saving may wait for the disk, longer than the timeout of a collective.
        context.group.main_first(save)
    else:
        save()
