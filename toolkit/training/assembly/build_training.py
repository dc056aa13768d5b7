"""Building the training context at step 0: model, optimizer, reduction, checkpoints, output."""

from __future__ import annotations

import logging
from dataclasses import replace

import torch
from torch import nn

from toolkit.checkpoint.state import Progress, TrainState
from toolkit.checkpoint.store import Checkpoints
from toolkit.checkpoint.verification import Identity
from toolkit.config.identity import identity
from toolkit.config.schema import Experiment, Train
from toolkit.data.order.batches import epoch_steps
from toolkit.distributed.process_group import Group
from toolkit.distributed.reduction import Reduction, parts_for
from toolkit.distributed.running_averages import RunningAverages
from toolkit.registry import task_kinds
from toolkit.reliability.fault_injection import Faults
from toolkit.reliability.quarantine import Quarantine
from toolkit.run.attempts.attempt import Attempt
from toolkit.run.events import note_event
from toolkit.run.records.step_records import StepRecords
from toolkit.run.run_dir import RunDir
from toolkit.task import Task
from toolkit.training.assembly.choose_reduction import choose_reduction, is_compiled
from toolkit.training.assembly.optimizers import build_optimizer
from toolkit.training.batch_workers import OnDemand
from toolkit.training.context import Activity, TrainContext, passes_of
from toolkit.training.numerics.arithmetic import agreed_precision, autocast_dtype, first_scale
from toolkit.training.numerics.rng import seed_everything
from toolkit.training.output.metrics_writer import MetricsWriter
from toolkit.training.output.progress_display import Display
from toolkit.training.schedule.due_steps import StepSchedule
from toolkit.training.step.single_samples import check_single_samples

log = logging.getLogger("toolkit")


def build_training(
    run: RunDir,
    experiment: Experiment,
    task: Task,
    group: Group,
    display: Display,
    *,
    attempt: Attempt | None = None,
    faults: Faults | None = None,
    quarantine: Quarantine | None = None,
    activity: Activity | None = None,
    split_for: int = 0,
) -> TrainContext:
    """Build model, optimizer and everything around them, as at step 0. Collective.

    split_for  world size for which each step is split into parts; 0 for that of the group
    """
    activity = activity or Activity()
    checkpoints = _checkpoints(run, experiment, task, group, faults, activity)
    experiment = _split(experiment, split_for or group.world.size)
    seed_everything(experiment.seed)
    state = _initial_state(experiment, task, group.device)
    schedule = StepSchedule.of(experiment, epoch_steps(experiment.train, task.splits["train"].lengths))
    reduction = choose_reduction(state.model, experiment, task, group)
    if is_compiled(state.model):
        activity.uncompiled |= {"training", "evaluation"}
    precision = agreed_precision(experiment.train.precision, group)
    if attempt is not None:
        attempt.computes_in(precision)
    on_demand = OnDemand(seeds_again=task_kinds()[experiment.task.kind].has_move)
    context = TrainContext(
        run=run,
        experiment=experiment,
        task=task,
        state=state,
        group=group,
        reduction=reduction,
        checkpoints=checkpoints,
        metrics_writer=MetricsWriter(
            run, schedule, group.world.is_main, display, attempt=attempt.number if attempt else 0
        ),
        schedule=schedule,
        step_records=StepRecords(run, group.world.is_main),
        peak_rates=tuple(each["lr"] for each in state.optimizer.param_groups),
        passes=passes_of(experiment.train, reduction, group.world.rank, group.world.size),
        averages=_averages(state.model, experiment.train, reduction, group),
        precision=autocast_dtype(precision, group.device),
        attempt=attempt,
        faults=faults,
        quarantine=quarantine or Quarantine(),
        activity=activity,
        on_demand=on_demand,
        batches=on_demand,
    )
    check_single_samples(context)
    return context


def _split(experiment: Experiment, size: int) -> Experiment:
    """Return the experiment with at least one part of each step for every process of the world."""
    train = experiment.train
    parts = parts_for(train.logical_ranks, size)
    if parts == train.logical_ranks:
        return experiment
    log.info(
        "%d processes split a step into %d parts, not into %d (train.logical_ranks): the result differs "
        "in rounding and in random numbers, such as those of dropout",
        size,
        parts,
        train.logical_ranks,
    )
    return replace(experiment, train=replace(train, logical_ranks=parts))


def _initial_state(experiment: Experiment, task: Task, device: torch.device) -> TrainState:
    # transformers loads models in evaluation mode, without dropout.
    model = task.model().to(device).train()
    optimizer = build_optimizer(model, experiment.optimizer, task)
    enabled = experiment.train.precision == "fp16"
    scaler = torch.amp.GradScaler(device.type, init_scale=first_scale(experiment.train), enabled=enabled)
    # It makes its scale when it scales something, and this process may have no samples in its first step.
    scaler.scale(torch.zeros((), device=device))
    return TrainState(Progress(), model, optimizer, scaler)


def _averages(model: nn.Module, train: Train, reduction: Reduction, group: Group) -> RunningAverages:
    averages = RunningAverages(model, group, rows=1 if reduction.joins_parts else train.logical_ranks)
    if averages and reduction.joins_parts:
        log.warning(
            "BatchNorm normalises the samples of each process by their own statistics, and train.reduction "
            "is fast: the result depends on the number of processes"
        )
    return averages


def _checkpoints(
    run: RunDir, experiment: Experiment, task: Task, group: Group, faults: Faults | None, activity: Activity
) -> Checkpoints:
    return Checkpoints(
        run,
        group,
        Identity(experiment=identity(experiment), data=task.fingerprint),
        experiment.checkpoint.keep,
        lambda event, **facts: note_event(run, event, **facts),
        experiment.checkpoint.every_minutes,
        faults=faults,
        heartbeat=activity.heartbeat,
    )
