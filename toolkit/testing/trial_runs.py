"""Runs of a few steps, for their weights only."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from toolkit.config.schema import Experiment
from toolkit.errors import RunFailed
from toolkit.exit_codes import ExitCode
from toolkit.files import read_json
from toolkit.launch.launcher import launch
from toolkit.launch.machines.coordination import Nodes
from toolkit.launch.machines.layout import Machines
from toolkit.reliability.fault_injection import VARIABLE as FAULTS
from toolkit.run.create_run import create_run
from toolkit.run.failure.format import format_failure
from toolkit.run.run_dir import WEIGHTS, RunDir

#: Steps of a run, and the maximum number of samples in each.
STEPS, _SAMPLES = 3, 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """The last step of a run, and the bytes of its weights file."""

    step: int
    weights: bytes


def train_until(experiment: Experiment, folder: Path, processes: int, *steps: int) -> Trial:
    """Train on the CPU with the exact reduction, in one attempt up to each of these steps.

    folder   for the run, not to be used otherwise
    Raises RunFailed with the run's output.
    """
    run = create_run(on_trial(experiment), folder)
    for attempt, step in enumerate(steps, start=1):
        code = launched(run, processes, f"term at=forward step={step - 1} rank=0 attempt={attempt}")
        if code not in (ExitCode.DONE, ExitCode.INTERRUPTED):
            failure = read_json(run.failure)
            if failure is None:
                raise RunFailed(f"training ended with exit status {code}")
            raise RunFailed(format_failure(failure).removeprefix("error: "))
    newest = run.checkpoint_steps()[-1]
    return Trial(step=newest, weights=(run.checkpoint(newest) / WEIGHTS).read_bytes())


def launched(run: RunDir, processes: int, fault: str) -> int:
    """Train a run on this machine with a fault (toolkit.reliability.fault_injection); return the status."""
    return launch(run, {**os.environ, FAULTS: fault}, Nodes(Machines.alone(processes)), quiet=True)


def on_trial(experiment: Experiment) -> Experiment:
    """The experiment as a trial trains it: small steps that any number of processes computes exactly."""
    train = experiment.train
    size = None if train.batch_size is None else min(train.batch_size, _SAMPLES)
    return replace(
        experiment,
        train=replace(
            train,
            batch_size=size,
            # Parts for two processes, in numbers that the exact reduction accepts.
            logical_ranks=max(2, _power_of_two(train.logical_ranks)),
            accumulation=_power_of_two(train.accumulation),
            reduction="exact",
            device="cpu",
            precision="fp32",
            compile="off",
        ),
        # A trial is not restarted after a crash, and sends no notification.
        resources=replace(experiment.resources, max_crashes=0, webhook_env=None),
    )


def _power_of_two(number: int) -> int:
    """The largest power of two up to a number."""
    return 1 << (number.bit_length() - 1)
