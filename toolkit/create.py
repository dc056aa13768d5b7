"""Making a run's folder: its config and the code it will run with."""

from __future__ import annotations

import os
import shutil
import uuid
from pathlib import Path

from toolkit.config import load_resolved, run_id, to_yaml
from toolkit.config.schema import Experiment
from toolkit.errors import UserError
from toolkit.files import fsync_dir, write_atomic, write_quickly
from toolkit.rundir import RunDir, experiment_dir

__all__ = ["PACKAGES", "create_run", "experiment_dir", "fill_run"]

#: Packages of this project that a run keeps a copy of.
PACKAGES = ("toolkit", "slurm")

_COMPILED = shutil.ignore_patterns("__pycache__")
_SOURCE = Path(__file__).resolve().parent.parent


def create_run(experiment: Experiment, parent: Path, shared_code: Path | None = None) -> RunDir:
    """Make the folder of an experiment's run, or find it. Any number of processes may call it.

    shared_code   of one of many runs, a copy of the code that a new folder gets a link to, and nothing is
                  flushed to the disk; the next call without it makes the copy the run's own
    Raises UserError where the folder cannot be written or holds another experiment.
    """
    run = RunDir(parent / run_id(experiment))
    fill_run(run, experiment, shared_code)
    return run


def fill_run(run: RunDir, experiment: Experiment, shared_code: Path | None = None) -> None:
    """Make the folder of a run whose id is known, as `create_run` does: working it out takes its time."""
    existed = run.path.exists()
    try:
        run.path.mkdir(parents=True, exist_ok=True)
        run.logs.mkdir(exist_ok=True)
        if run.config.exists():
            _check_same(run)
        else:
            write = write_atomic if shared_code is None else write_quickly
            write(run.config, to_yaml(experiment))
        _snapshot(run, shared_code)
    except OSError as error:
        if not existed:
            shutil.rmtree(run.path, ignore_errors=True)
        raise UserError(
            f"cannot write the run folder {run.path}: {error.strerror or error}. "
            "STK_EXPERIMENT_DIR chooses another place."
        ) from error


def _check_same(run: RunDir) -> None:
    stored = run_id(load_resolved(run.config))
    if stored != run.run_id:
        raise UserError(
            f"{run.config} holds the experiment {stored}, not {run.run_id}: it was edited. "
            "Put it back, or move the folder away."
        )


def copy_code(target: Path) -> None:
    """Copy this project's packages into a folder that is made for them."""
    for package in PACKAGES:
        source = _SOURCE / package
        if source.is_dir():
            shutil.copytree(source, target / package, ignore=_COMPILED)


def _snapshot(run: RunDir, shared: Path | None) -> None:
    """Copy the code once: a run goes on with what it started with."""
    is_link = run.code.is_symlink()
    if run.code.exists() and (shared is not None or not is_link):
        return
    if shared is not None and not is_link:
        run.code.symlink_to(os.path.relpath(shared, run.path))
        return
    # Not the process id: those of two hosts may be equal.
    temporary = run.path / f".code.{uuid.uuid4().hex}.tmp"
    if run.code.exists():
        shutil.copytree(run.code, temporary, copy_function=_link, ignore=_COMPILED)
    else:
        copy_code(temporary)
    try:
        if is_link:
            # Where another process was first, this is no link any more, and stays.
            run.code.unlink()
        os.rename(temporary, run.code)
    except OSError:
        # Another process was first.
        shutil.rmtree(temporary, ignore_errors=True)
        if not run.code.exists():
            raise
    fsync_dir(run.path)


def _link(source: str, target: str) -> None:
    """A second name of a file, or a copy where the file system has none."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
