"""Building the context of a training as at step 0: model, optimizer, reduction, checkpoints, output."""

from __future__ import annotations

import torch

from toolkit.checkpoint.state import Progress, TrainState
from toolkit.checkpoint.store import Checkpoints, Identity
from toolkit.config import identity
from toolkit.config.schema import Experiment
from toolkit.data.order.batches import epoch_steps
from toolkit.distributed.process_group import Group
from toolkit.reliability.fault_injection import Faults
from toolkit.reliability.quarantine import Quarantine
from toolkit.run.attempts.ledger import Attempt
from toolkit.run.events import note_event
from toolkit.run.records.step_records import StepRecords
from toolkit.run.run_dir import RunDir
from toolkit.task import Task
from toolkit.training.assembly.choose_reduction import choose_reduction
from toolkit.training.assembly.optimizers import build_optimizer
from toolkit.training.context import Activity, TrainContext, passes_of
from toolkit.training.numerics.rng import seed_everything
from toolkit.training.output.metrics_writer import MetricsWriter
from toolkit.training.output.progress_display import Display
from toolkit.training.schedule.due_steps import StepSchedule


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
) -> TrainContext:
    """Model, optimizer and everything around them, as at step 0. Collective."""
    activity = activity or Activity()
    seed_everything(experiment.seed)
    state = _initial_state(experiment, task, group.device)
    schedule = StepSchedule.of(experiment, epoch_steps(experiment.train, task.splits["train"].lengths))
    reduction = choose_reduction(state.model, experiment, task, group)
    return TrainContext(
        run=run,
        experiment=experiment,
        task=task,
        state=state,
        group=group,
        reduction=reduction,
        checkpoints=_checkpoints(run, experiment, task, group, faults, activity),
        metrics_writer=MetricsWriter(run, schedule, group.world.is_main, display),
        schedule=schedule,
        step_records=StepRecords(run, group.world.is_main),
        passes=passes_of(experiment.train, reduction, group.world.rank, group.world.size),
        attempt=attempt,
        faults=faults,
        quarantine=quarantine or Quarantine(),
        activity=activity,
    )


def _initial_state(experiment: Experiment, task: Task, device: torch.device) -> TrainState:
    # transformers loads models in evaluation mode, that is without dropout.
    model = task.model().to(device).train()
    optimizer = build_optimizer(model, experiment.optimizer)
    scaler = torch.amp.GradScaler(device.type, enabled=experiment.train.precision == "fp16")
    return TrainState(Progress(), model, optimizer, scaler)


def _checkpoints(
    run: RunDir,
    experiment: Experiment,
    task: Task,
    group: Group,
    faults: Faults | None,
    activity: Activity,
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
