"""Making a run's folder: its config and the code it will run with."""

from __future__ import annotations

import os
import shutil
import uuid
from pathlib import Path

from toolkit.config import load_resolved, run_id, to_yaml
from toolkit.config.schema import Experiment
from toolkit.errors import UserError
from toolkit.files import fsync_dir, write_atomic
from toolkit.rundir import RunDir

#: Packages of this project that a run keeps a copy of.
PACKAGES = ("toolkit", "slurm")

_SOURCE = Path(__file__).resolve().parent.parent


def experiment_dir() -> Path:
    """Where runs are kept: STK_EXPERIMENT_DIR, or `experiments` in the working directory."""
    return Path(os.environ.get("STK_EXPERIMENT_DIR") or "experiments").resolve()


def create_run(experiment: Experiment, parent: Path) -> RunDir:
    """Make the folder of an experiment's run, or find it. Any number of processes may call it.

    Raises UserError where the folder cannot be written or holds another experiment.
    """
    run = RunDir(parent / run_id(experiment))
    existed = run.path.exists()
    try:
        run.logs.mkdir(parents=True, exist_ok=True)
        if run.config.exists():
            _check_same(run, experiment)
        else:
            write_atomic(run.config, to_yaml(experiment))
        _snapshot(run)
    except OSError as error:
        if not existed:
            shutil.rmtree(run.path, ignore_errors=True)
        raise UserError(
            f"cannot write the run folder {run.path}: {error.strerror or error}. "
            "STK_EXPERIMENT_DIR chooses another place."
        ) from error
    return run


def _check_same(run: RunDir, experiment: Experiment) -> None:
    stored = run_id(load_resolved(run.config))
    if stored != run_id(experiment):
        raise UserError(
            f"{run.config} holds the experiment {stored}, not {run_id(experiment)}: it was edited. "
            "Put it back, or move the folder away."
        )


def _snapshot(run: RunDir) -> None:
    """Copy the code once: a run goes on with what it started with."""
    if run.code.exists():
        return
    # Not the process id: those of two hosts may be equal.
    temporary = run.path / f".code.{uuid.uuid4().hex}.tmp"
    for package in PACKAGES:
        source = _SOURCE / package
        if source.is_dir():
            shutil.copytree(source, temporary / package, ignore=shutil.ignore_patterns("__pycache__"))
    try:
        os.rename(temporary, run.code)
    except OSError:
        # Another process was first.
        shutil.rmtree(temporary, ignore_errors=True)
        if not run.code.exists():
            raise
    fsync_dir(run.path)
