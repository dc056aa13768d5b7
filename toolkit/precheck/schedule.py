"""Schedules that do not fit: one that needs more steps than the run has, a warm-up that is not linear."""

from __future__ import annotations

import math
from collections.abc import Iterator

from toolkit.config.schema import Experiment, Train
from toolkit.data.prepared.lookup import find_prepared_set
from toolkit.precheck.steps_per_epoch import steps_per_epoch
from toolkit.system.output.amounts import counted
from toolkit.training.schedule.due_steps import StepSchedule
from toolkit.workload import Violation


def schedule_warnings(experiment: Experiment) -> Iterator[Violation]:
    """Find schedules that do not fit. Without prepared data its steps are not known."""
    yield from _warmup_type(experiment)
    if (of_epoch := steps_per_epoch(experiment)) is not None:
        schedule = StepSchedule.of(experiment, of_epoch)
        yield from _reductions(experiment, schedule.total_steps / of_epoch)
        yield from _evaluations(experiment.train, schedule)
        yield from _warmup(experiment, schedule)
        yield from _saves(schedule)
        yield from _per_epoch(experiment.train, schedule)
        yield from _fullness(experiment, of_epoch)
    elif experiment.train.steps is not None:
        # Schedules in steps need no epochs.
        schedule = StepSchedule.of(experiment, experiment.train.steps)
        yield from _warmup(experiment, schedule)
        yield from _saves(schedule)
        if experiment.train.eval_steps is not None:
            yield from _evaluations(experiment.train, schedule)
    elif experiment.train.epochs is not None:
        yield from _reductions(experiment, experiment.train.epochs)


def _warmup_type(experiment: Experiment) -> Iterator[Violation]:
    scheduler = experiment.lr_scheduler
    found = scheduler.arguments.get("warmup_type", "linear")
    if scheduler.kind == "warmup_stable_decay" and found != "linear":
        key = ("lr_scheduler", "arguments", "warmup_type")
        yield Violation(key=key, problem=f"found {found}, which has no effect", hint="the warm-up is linear")


def _reductions(experiment: Experiment, epochs: float) -> Iterator[Violation]:
    scheduler = experiment.lr_scheduler
    if scheduler.kind == "step" and scheduler.step_at is None and scheduler.step_epochs >= epochs:
        problem = f"found {scheduler.step_epochs:g}, but the run has {counted(math.ceil(epochs), 'epoch')}"
        hint = "the learning rate is never reduced"
        yield Violation(key=("lr_scheduler", "step_epochs"), problem=problem, hint=hint)


def _warmup(experiment: Experiment, schedule: StepSchedule) -> Iterator[Violation]:
    scheduler, total = experiment.lr_scheduler, schedule.total_steps
    if (steps := scheduler.warmup_steps(total)) >= total:
        problem = f"found {counted(steps, 'step')} of warm-up, but the run has {counted(total, 'step')}"
        hint = f"the learning rate reaches {100 * min(1.0, total / steps):.0f} % of optimizer.lr"
        if scheduler.warmup <= 1:
            hint += f" only in its last step: {scheduler.warmup:g} is a share of the steps, not their number"
        yield Violation(key=("lr_scheduler", "warmup"), problem=problem, hint=hint)


def _saves(schedule: StepSchedule) -> Iterator[Violation]:
    every, total = schedule.save_every, schedule.total_steps
    if every is not None and every > total:
        problem = f"found {every}, but the run has {counted(total, 'step')}"
        hint = "it saves only with its evaluations and at its end"
        yield Violation(key=("checkpoint", "every_steps"), problem=problem, hint=hint)


def _evaluations(train: Train, schedule: StepSchedule) -> Iterator[Violation]:
    every, total = schedule.eval_every, schedule.total_steps
    if every is not None and every > total:
        name = "eval_epochs" if train.eval_steps is None else "eval_steps"
        problem = f"found {getattr(train, name)}, but the run has {counted(total, 'step')}"
        yield Violation(key=("train", name), problem=problem, hint="it is evaluated only at its end")


def _per_epoch(train: Train, schedule: StepSchedule) -> Iterator[Violation]:
    """Find more lines or evaluations than steps, unless it is the default, which suits long epochs."""
    for name, what in (("log_per_epoch", "a line of metrics"), ("eval_per_epoch", "an evaluation")):
        wanted = getattr(train, name)
        if wanted > schedule.steps_per_epoch and wanted != getattr(Train(), name):
            problem = f"found {wanted}, but an epoch has {counted(schedule.steps_per_epoch, 'step')}"
            yield Violation(key=("train", name), problem=problem, hint=f"every step has {what}")


def _fullness(experiment: Experiment, of_epoch: int) -> Iterator[Violation]:
    """Steps of tokens that are less than half full: each keeps room for one more of the longest samples."""
    budget, path = experiment.train.batch_max_length, find_prepared_set(experiment.data)
    if budget is not None and experiment.train.bucket_span is None and path is not None:
        lengths = experiment.data.open_prepared(path).split("train").lengths
        if of_epoch > 2 * (full := -(-int(lengths.sum()) // budget)):
            problem = (
                f"found {budget:,} beside a sample of {int(lengths.max()):,} tokens: an epoch has "
                f"{counted(of_epoch, 'step')}, and {full:,} could hold its tokens"
            )
            hint = "set train.bucket_span, or allow several times the tokens of the longest sample"
            yield Violation(key=("train", "batch_max_length"), problem=problem, hint=hint)
