"""Replaying a step: what it read and what its loss was, computed anew from the run's folder.

A process of its own, with the run's own code:

    python -P -m toolkit.replay RUN_DIR STEP

writes one JSON document to standard output and nothing into the run's folder.
"""

from __future__ import annotations

import json
import math
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from toolkit.beginning import begin_with
from toolkit.checkpoint.store import Identity, load, verify
from toolkit.config import identity, load_resolved
from toolkit.control import Control
from toolkit.data.origins import origins
from toolkit.data.plan import EpochPlan
from toolkit.display import Silent, passing_bar
from toolkit.distributed import Group, choose_device
from toolkit.errors import CheckpointError, RendezvousError, RunFailed, StkError, TrainingDiverged
from toolkit.failure.quarantine import Quarantine
from toolkit.loop import plan_of, take_step
from toolkit.receipts import Receipt, check_step, read_receipts, samples_crc32
from toolkit.rundir import RunDir
from toolkit.tasks.base import Loss, task_class
from toolkit.training import Training
from toolkit.worker import build_training, set_arithmetic
from toolkit.world import World

#: Told how many steps are done, and of how many.
Report = Callable[[int, int], None]

#: Largest relative difference of two losses that is put down to rounding.
_ROUNDING = 1e-4


class _Never:
    """A Stop that nobody asks for."""

    def reason(self, lead_s: float) -> str | None:
        return None


class _Noting(Control):
    """Keeps the losses of the micro-batches."""

    def __init__(self, training: Training) -> None:
        super().__init__(training.group.device, training.micro_batches, training.task.train_sums)
        self.losses: dict[int, Loss] = {}

    def add(self, row: int, loss: Loss) -> None:
        self.losses[row] = loss
        super().add(row, loss)


def replay(run: RunDir, step: int, report: Report) -> dict[str, Any]:
    """Compute a step (counted from 1) anew, from the newest good checkpoint before it; plain values.

    An error that the step raises is part of what it says. Raises StkError where it cannot be computed:
    UserError where the run has no such step.
    """
    check_step(run, step)
    training, start = _training_before(run, step)
    plan = _advance(training, start, step, report)
    position = (step - 1) % training.calendar.steps_per_epoch
    control, error = _Noting(training), None
    parts = [training.kept(plan.micro_batch(position, n)) for n in range(training.micro_batches)]
    all_samples = plan.step(position)
    try:
        take_step(training, control, plan, position, _Never())
    except Exception as caught:
        error = _describe(training, caught)
    samples = np.concatenate(parts)
    loss = sum_of(control.losses, training.micro_batches) if error is None else None
    receipt = next((each for each in read_receipts(run) if each.step == step), None)
    return {
        "run_id": run.run_id,
        "step": step,
        "total_steps": training.calendar.total_steps,
        "epoch": training.calendar.epoch(step),
        "lr": training.state.optimizer.param_groups[0]["lr"] if error is None else None,
        "checkpoint": start or None,
        "recomputed": step - 1 - start,
        "device": training.group.device.type,
        "loss": loss,
        "count": sum(each.count for each in control.losses.values()),
        "samples": f"{samples_crc32(samples):08x}",
        "left_out": np.setdiff1d(all_samples, samples).tolist(),
        "micro_batches": [_part(training, number, ids, control) for number, ids in enumerate(parts)],
        "error": error,
        "receipt": None if receipt is None else asdict(receipt),
        "verdict": judge(receipt, f"{samples_crc32(samples):08x}", loss),
    }


def judge(receipt: Receipt | None, samples: str, loss: float | None) -> str:
    """How a step compares with its receipt: exact, rounding, other_loss, other_samples, or no_receipt."""
    if receipt is None:
        return "no_receipt"
    if receipt.samples != samples:
        return "other_samples"
    if loss == receipt.loss:
        return "exact"
    is_close = loss is not None and math.isclose(loss, receipt.loss, rel_tol=_ROUNDING)
    return "rounding" if is_close else "other_loss"


def sum_of(losses: Mapping[int, Loss], micro_batches: int) -> float:
    """The loss of a step, added up as the control vector does it."""
    rows = np.zeros(micro_batches)
    for number, loss in losses.items():
        rows[number] = float(loss.total.detach().double())
    return float(rows.sum())


def _training_before(run: RunDir, step: int) -> tuple[Training, int]:
    """Training as it stood at the newest good checkpoint before a step, and how many steps it had done."""
    experiment = load_resolved(run.config)
    set_arithmetic(experiment)
    task = task_class(experiment)(experiment)
    group = Group(World.single(), _device(experiment.train.device))
    expected = Identity(experiment=identity(experiment), data=task.fingerprint)

    def build() -> Training:
        training = build_training(run, experiment, task, group, Silent())
        training.quarantine = Quarantine.of(run, experiment.train.quarantine)
        return training

    for saved in reversed([saved for saved in run.checkpoint_steps() if saved < step]):
        training = build()
        try:
            verify(run.checkpoint(saved), expected)
            load(run.checkpoint(saved), training.state)
            return training, saved
        except (CheckpointError, OSError):
            # Damaged, or a live run has just made room for a newer one.
            continue
    training = build()
    begin_with(experiment, training.state.model, group)
    return training, 0


def _device(wanted: str) -> torch.device:
    """The device of the run where this machine has it; else the CPU, within rounding."""
    try:
        return choose_device(World.single(), wanted)
    except RendezvousError:
        return torch.device("cpu")


def _advance(training: Training, start: int, step: int, report: Report) -> EpochPlan:
    """Do the steps up to the one before `step`; return the plan of the epoch of `step`."""
    steps_per_epoch = training.calendar.steps_per_epoch
    control = Control(training.group.device, training.micro_batches, training.task.train_sums)
    plan, planned = plan_of(training, start // steps_per_epoch), start // steps_per_epoch
    for done in range(start, step):
        report(done - start, step - start)
        epoch, position = divmod(done, steps_per_epoch)
        if epoch != planned:
            plan, planned = plan_of(training, epoch), epoch
        if done < step - 1:
            _take(training, control, plan, position, step)
    return plan


def _take(training: Training, control: Control, plan: EpochPlan, position: int, target: int) -> None:
    try:
        take_step(training, control, plan, position, _Never())
    except Exception as error:
        at = training.state.progress.step + 1
        raise RunFailed(
            f"step {at}, on the way to step {target}, fails: {error}. stk replay --step {at} shows it"
        ) from error


def _part(training: Training, number: int, samples: np.ndarray, control: _Noting) -> dict[str, Any]:
    loss = control.losses.get(number)
    value = None if loss is None else float(loss.total.detach().double())
    return {
        "micro_batch": number,
        "loss": value if value is None or math.isfinite(value) else str(value),
        "count": 0 if loss is None else loss.count,
        "samples": [asdict(each) for each in origins(training.task.splits["train"], samples)],
    }


def _describe(training: Training, error: Exception) -> dict[str, Any]:
    """What a step raised, and the samples of the micro-batch at work."""
    is_ours = isinstance(error, TrainingDiverged)
    return {
        "message": str(error) if is_ours else f"{type(error).__name__}: {error}",
        "phase": training.phase,
        "samples": [] if training.batch is None else training.batch.tolist(),
        "traceback": "" if is_ours else "".join(traceback.format_exception(error)),
    }


def main(argv: Sequence[str]) -> int:
    """Replay a step for another program; return the exit status."""
    # What libraries print must not get into the document.
    document = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        with passing_bar() as show:
            report = partial(show, "recomputing")
            answer = replay(RunDir(Path(argv[0])), int(argv[1]), report)
    except StkError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    with document:
        json.dump(answer, document, ensure_ascii=False, allow_nan=False)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
