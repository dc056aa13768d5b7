"""Making a run's folder: its config and the code it will run with."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from toolkit.config import load_resolved, load_to_run, run_id, to_yaml
from toolkit.config.schema import Experiment
from toolkit.errors import UserError
from toolkit.files import is_still, write_atomic, write_quickly
from toolkit.run.failure.classes import NO_ROOM
from toolkit.run.folder_trust import check_run
from toolkit.run.kept_code.code_snapshot import keep_code
from toolkit.run.run_dir import PREPARATIONS, RunDir, experiment_dir


def run_of(experiment: Experiment, parent: Path | None = None) -> RunDir:
    """The run folder of an experiment, existing or not; by default in the folder of runs."""
    return RunDir((parent or experiment_dir()) / run_id(experiment))


def stored_experiment(run: RunDir) -> Experiment:
    """Return the experiment that a run's folder trains.

    Raises UserError if it is not the one of the folder's name, or if the folder only prepares its data.
    """
    if run.path.parent == experiment_dir() / PREPARATIONS:
        raise UserError(f"{run.path} prepares data and trains nothing: repeat `stk prepare`")
    experiment = load_to_run(run.config)
    if run_id(experiment) != run.run_id:
        raise UserError(
            f"the folder {run.path} holds the experiment of the run {run_id(experiment)}: it was exported or "
            "renamed, or its config.yaml was edited. Continue the run itself, or undo the change"
        )
    return experiment


def create_run(experiment: Experiment, parent: Path) -> RunDir:
    """Make the folder of an experiment's run, or find it; see `fill_run`."""
    run = run_of(experiment, parent)
    fill_run(run, experiment)
    return run


def fill_run(
    run: RunDir, experiment: Experiment, shared_code: Path | None = None, *, place: RunDir | None = None
) -> bool:
    """Make the folder of a run, or find it; return whether this call has made it, which only one call does.

    Any number of processes may call it. The caller gives the id, because computing it takes time.

    shared_code   a copy of the code that many runs share: a new folder gets a link to it, and nothing is
                  flushed to the disk; the next call without it gives the run its own copy
    place         where a folder that is made elsewhere is moved to: errors are about it
    Raises UserError if the folder cannot be written or holds another experiment, and UntrustedFolder.
    """
    made = None
    try:
        run.path.parent.mkdir(parents=True, exist_ok=True)
        made = _make_folder(run.path)
        check_run(place or run)
        run.logs.mkdir(exist_ok=True)
        if run.config.exists():
            _check_same(run)
        else:
            write = write_atomic if shared_code is None else write_quickly
            write(run.config, to_yaml(experiment))
        keep_code(run, experiment, shared_code)
        return made is not None
    except (OSError, UserError) as error:
        # Another command may have set it aside and made its own, or may have begun with it.
        if made and is_still(run.path, made) and not (run.lock.exists() or run.alive.exists()):
            shutil.rmtree(run.path, ignore_errors=True)
        if isinstance(error, UserError):
            raise
        raise cannot_write(place or run, error) from error


def _make_folder(path: Path) -> os.stat_result | None:
    """Make the folder unless it exists; return what identifies it in the one process that has made it."""
    try:
        # Files in it are executed: no other user may write there, even if the umask allows it.
        path.mkdir(mode=0o755)
    except FileExistsError:
        if not path.is_dir():
            raise
        return None
    return path.stat()


def cannot_write(run: RunDir, error: OSError, *, may_have_job: bool = False) -> UserError:
    # The error may name another file, such as a source file that was removed before it was copied. On a full
    # disk it may name the source too, which lies on another one.
    is_named = error.filename not in (None, str(run.path)) and error.errno not in NO_ROOM
    file = f" ({error.filename})" if is_named else ""
    if may_have_job:
        hint = "A job of the run may have been submitted: make room there and repeat the command."
    else:
        hint = "STK_EXPERIMENT_DIR chooses another place."
    return UserError(f"cannot write the run folder {run.path}: {error.strerror or error}{file}. {hint}")


def _check_same(run: RunDir) -> None:
    stored = run_id(load_resolved(run.config))
    if stored != run.run_id:
        raise UserError(
            f"{run.config} holds the experiment {stored}, not {run.run_id}: it was edited. "
            "Undo the edit, or move the folder away."
        )
