"""The part of a finished run that others need to use it, as a separate folder. Imports no torch."""

from __future__ import annotations

import shutil
from pathlib import Path

from toolkit.checkpoint.finished import best_checkpoint
from toolkit.checkpoint.paths import matches_manifest
from toolkit.config import load_resolved
from toolkit.errors import CheckpointError, UserError
from toolkit.files import crc32, read_json, temporary_folder, write_json
from toolkit.registry import task_kinds
from toolkit.run import folder_trust
from toolkit.run.kept_code.code_snapshot import restrict_writes
from toolkit.run.run_dir import MANIFEST, PROGRESS, TRAINING, WEIGHTS, RunDir

_COMPILED = shutil.ignore_patterns("__pycache__")
#: A safetensors file without tensors: the length of its header in 8 bytes, and the header.
_NO_TENSORS = (2).to_bytes(8, "little") + b"{}"


def export_run(run: RunDir, folder: Path) -> RunDir:
    """Copy the files for using a finished run: best weights, experiment, code, and the task's kept artifacts.

    folder   created; appears only when complete. `stk predict` and `stk.load` accept it like a run
    Logs, metrics, reports and the state of the optimizer are left out, so that it cannot train further.

    Raises UserError if the run has not finished or its task has no model, or if the folder exists or
    cannot be written; UntrustedFolder if others may write its code; CheckpointError if the best
    checkpoint is gone or damaged.
    """
    kind = task_kinds()[load_resolved(run.config).task.kind]
    if not kind.task:
        raise UserError(f"{run.run_id} has no known model: its task.kind is {kind.kind}")
    # The copy belongs to this user, and would be trusted.
    folder_trust.check_run(run)
    checkpoint = best_checkpoint(run)
    if not matches_manifest(checkpoint):
        raise CheckpointError(f"{checkpoint} is damaged: its files do not match its {MANIFEST}")
    if folder.exists():
        raise UserError(f"{folder} exists: name a folder that does not exist, so that no files are mixed")
    if folder.resolve().is_relative_to(run.path.resolve()):
        raise UserError(f"{folder} is in the run's own folder: name another one")
    try:
        with temporary_folder(f".{folder.name}.", folder.absolute().parent) as beside:
            made = RunDir(beside / "run")
            _copy(run, made, kind.kept_artifacts)
            _copy_weights(checkpoint, made.checkpoint(int(checkpoint.name.rpartition("_")[2])))
            made.best.symlink_to(checkpoint.name)
            made.path.rename(folder)
    except OSError as error:
        raise UserError(f"cannot write {folder}: {error.strerror or error}") from error
    return RunDir(folder)


def _copy(run: RunDir, made: RunDir, artifacts: tuple[str, ...]) -> None:
    # No other user may write there, even if the umask allows it: `stk.load` would refuse it.
    made.path.mkdir(mode=0o755)
    parts = (run.config, run.result, run.code, *(run.artifacts / name for name in artifacts))
    for source in filter(Path.exists, parts):
        target = made.path / source.relative_to(run.path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=_COMPILED)
        else:
            shutil.copy2(source, target)
    restrict_writes(made.code)
    made.config.chmod(made.config.stat().st_mode & 0o755)


def _copy_weights(checkpoint: Path, made: Path) -> None:
    """Make a checkpoint with the weights, but without the state for further training."""
    made.mkdir(parents=True)
    for name in (WEIGHTS, PROGRESS):
        shutil.copyfile(checkpoint / name, made / name)
    (made / TRAINING).write_bytes(_NO_TENSORS)
    manifest = read_json(checkpoint / MANIFEST)
    manifest["files"][TRAINING] = {"bytes": len(_NO_TENSORS), "crc32": crc32(made / TRAINING)}
    write_json(made / MANIFEST, manifest)
