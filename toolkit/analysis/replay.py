"""Replay a step: compute its samples and its loss again from the run's folder.

Runs as a separate process with the code of the run:

    python -P -m toolkit.analysis.replay RUN_DIR STEP

writes one JSON document to standard output and nothing into the run's folder.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from toolkit.checkpoint.loading.load import load
from toolkit.checkpoint.verification import Identity, verify
from toolkit.config import load_to_run
from toolkit.config.identity import identity
from toolkit.config.secrets import concealed
from toolkit.data.order.sample_order import EpochPlan
from toolkit.data.provenance import origins
from toolkit.distributed.devices import choose_device
from toolkit.distributed.process_group import Group
from toolkit.distributed.step_sync import StepSync
from toolkit.errors import CheckpointError, DeviceError, RunFailed, TrainingDiverged, UserError
from toolkit.reliability.quarantine import Quarantine
from toolkit.reliability.stop import NeverStop
from toolkit.run.attempts.records import read_attempts
from toolkit.run.failure.own_frames import own_trace
from toolkit.run.records.step_records import StepRecord, check_step, read_step_records, samples_crc32
from toolkit.run.run_dir import RunDir
from toolkit.system.process_main import process_main, write_answer
from toolkit.system.world import World
from toolkit.task import Loss, task_class
from toolkit.training.assembly.build_training import build_training
from toolkit.training.context import TrainContext
from toolkit.training.loop import plan_of
from toolkit.training.numerics.arithmetic import set_arithmetic
from toolkit.training.output.progress_display import Display, transient_bar
from toolkit.training.step.take_step import take_step
from toolkit.training.warm_start.load import load_initial_weights

#: Called with the number of steps done and the total.
StepProgress = Callable[[int, int], None]

#: Largest relative difference of two losses that counts as rounding.
_ROUNDING = 1e-4


class _LossRecorder(StepSync):
    """Keeps the losses of the micro-batches."""

    def __init__(self, context: TrainContext) -> None:
        super().__init__(context.group.device, context.micro_batches, context.task.train_sums)
        self.losses: dict[int, Loss] = {}

    def add(self, row: int, loss: Loss) -> None:
        self.losses[row] = loss
        super().add(row, loss)


def replay(run: RunDir, step: int, progress: StepProgress) -> dict[str, Any]:
    """Compute a step (counted from 1) again, from the newest good checkpoint before it; return plain values.

    An error that the step raises is part of the answer. Raises StkError if the step cannot be computed, and
    UserError if the run has no such step.
    """
    check_step(run, step)
    context, start = _training_before(run, step)
    context, plan = _advance(context, start, step, progress)
    position = (step - 1) % context.schedule.steps_per_epoch
    sync, error = _LossRecorder(context), None
    parts = [
        context.without_quarantined(plan.micro_batches_of(position, numbers)) for numbers in context.passes
    ]
    all_samples = plan.step(position)
    samples = context.without_quarantined(all_samples)
    try:
        take_step(context, sync, plan, position, NeverStop())
    except Exception as caught:
        error = _describe(context, caught)
    loss = sum_of(sync.losses, context.micro_batches) if error is None else None
    record = next((each for each in read_step_records(run) if each.step == step), None)
    return {
        "run_id": run.run_id,
        "step": step,
        "total_steps": context.schedule.total_steps,
        "epoch": context.schedule.epoch(step),
        "lr": context.state.optimizer.param_groups[0]["lr"] if error is None else None,
        "checkpoint": start or None,
        "recomputed": step - 1 - start,
        "device": context.group.device.type,
        "loss": loss,
        "count": sum(each.counted for each in sync.losses.values()),
        "samples": f"{samples_crc32(samples):08x}",
        "left_out": np.setdiff1d(all_samples, samples).tolist(),
        "micro_batches": [
            _part(context, numbers[0], ids, sync) for numbers, ids in zip(context.passes, parts, strict=True)
        ],
        "error": error,
        "receipt": None if record is None else asdict(record),
        "verdict": judge(record, f"{samples_crc32(samples):08x}", loss),
    }


def judge(record: StepRecord | None, samples: str, loss: float | None) -> str:
    """Compare a step with its record: exact, rounding, other_loss, other_samples, or no_receipt."""
    if record is None:
        return "no_receipt"
    if record.samples != samples:
        return "other_samples"
    if loss == record.loss:
        return "exact"
    is_close = loss is not None and math.isclose(loss, record.loss, rel_tol=_ROUNDING)
    return "rounding" if is_close else "other_loss"


def sum_of(losses: Mapping[int, Loss], micro_batches: int) -> float:
    """The loss of a step, added up as in the control vector."""
    rows = np.zeros(micro_batches)
    for number, loss in losses.items():
        rows[number] = float(loss.total.detach().double())
    return float(rows.sum())


def _processes_at(run: RunDir, step: int) -> int:
    """Return how many processes last computed this step (counted from 1); 1 if that is not known."""
    sizes = [each.world_size for each in read_attempts(run) if each.world_size and each.includes(step)]
    return sizes[-1] if sizes else 1


def _training_before(run: RunDir, step: int) -> tuple[TrainContext, int]:
    """Training at the newest good checkpoint before a step, and the steps done by then."""
    experiment = load_to_run(run.config)
    set_arithmetic(experiment)
    task = task_class(experiment)(experiment)
    group = Group(World.single(), _device(experiment.train.device))
    expected = Identity(experiment=identity(experiment), data=task.fingerprint)

    size = _processes_at(run, step)

    def build() -> TrainContext:
        quarantine = Quarantine.of(run, experiment.train.quarantine)
        return build_training(run, experiment, task, group, Display(), quarantine=quarantine, split_for=size)

    for saved in reversed([saved for saved in run.checkpoint_steps() if saved < step]):
        context = build()
        try:
            verify(run.checkpoint(saved), expected)
            load(run.checkpoint(saved), context.state)
            return context, saved
        except (CheckpointError, OSError):
            # Damaged, or a live run has just deleted it.
            continue
    context = build()
    load_initial_weights(experiment, context.state.model, group)
    return context, 0


def _device(wanted: str) -> torch.device:
    """The device of the run if this machine has it; else the CPU, with equal results within rounding."""
    try:
        return choose_device(wanted)
    except (DeviceError, UserError):
        return torch.device("cpu")


def _advance(
    context: TrainContext, start: int, step: int, progress: StepProgress
) -> tuple[TrainContext, EpochPlan]:
    """Do the steps up to the one before `step`; return the context and the epoch plan of `step`."""
    steps_per_epoch = context.schedule.steps_per_epoch
    sync = StepSync(context.group.device, context.micro_batches, context.task.train_sums)
    plan = cache(partial(plan_of, context))
    for done in range(start, step - 1):
        progress(done - start, step - start)
        epoch, position = divmod(done, steps_per_epoch)
        _take(_as_computed_at(context, done + 1), sync, plan(epoch), position, step)
    progress(step - 1 - start, step - start)
    return _as_computed_at(context, step), plan((step - 1) // steps_per_epoch)


def _as_computed_at(context: TrainContext, step: int) -> TrainContext:
    """The context with the passes in which the run computed a step: its random numbers depend on them."""
    size = _processes_at(context.run, step)
    passes = [numbers for rank in range(size) for numbers in context.passes_of(rank, size)]
    return replace(context, passes=passes)


def _take(context: TrainContext, sync: StepSync, plan: EpochPlan, position: int, target: int) -> None:
    try:
        take_step(context, sync, plan, position, NeverStop())
    except Exception as error:
        at = context.state.progress.step + 1
        raise RunFailed(
            f"step {at}, on the way to step {target}, fails: {error}. "
            f"stk replay {context.run.run_id} --step {at} shows it"
        ) from error


def _part(context: TrainContext, number: int, samples: np.ndarray, sync: _LossRecorder) -> dict[str, Any]:
    loss = sync.losses.get(number)
    value = None if loss is None else float(loss.total.detach().double())
    return {
        "micro_batch": number,
        "loss": value if value is None or math.isfinite(value) else str(value),
        "count": 0 if loss is None else loss.counted,
        "samples": [asdict(each) for each in origins(context.task.splits["train"], samples)],
    }


def _describe(context: TrainContext, error: Exception) -> dict[str, Any]:
    """The error of a step, and the samples of the micro-batch that raised it."""
    is_ours = isinstance(error, TrainingDiverged)
    return {
        "message": concealed(str(error) if is_ours else f"{type(error).__name__}: {error}"),
        "phase": context.activity.phase,
        "samples": [] if context.activity.batch is None else context.activity.batch.tolist(),
        "traceback": "" if is_ours else concealed(own_trace(error)),
    }


def main(argv: Sequence[str]) -> int:
    """Replay a step for another program; return the exit status."""

    def work() -> dict[str, Any]:
        with transient_bar() as show:
            return replay(RunDir(Path(argv[0])), int(argv[1]), partial(show, "recomputing"))

    return write_answer(work, allow_nan=False)


if __name__ == "__main__":
    process_main(main)
