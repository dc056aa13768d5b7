"""Checkpoint folders on the disk: temporary names, links, and deletion. Imports no torch."""

from __future__ import annotations

import logging
import os
import shutil
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from toolkit.files import crc32, fsync_path, read_json, read_object
from toolkit.run.run_dir import MANIFEST, PROGRESS, REPLACED, RunDir, inside

#: Most damaged checkpoints that are kept for inspection: they take disk space.
_KEPT_ASIDE = 2

log = logging.getLogger("toolkit")

#: Called with the name of each point of a save at which a test may inject a fault.
FaultPoint = Callable[[str], None]


def temporary_name(target: Path, nonce: str, kind: str) -> Path:
    """A hidden name beside the target that no other attempt uses."""
    # One dot, also for what is hidden already: leftovers are found by it.
    return target.with_name(f".{target.name.lstrip('.')}.{nonce or os.getpid()}.{kind}")


def replace_link(path: Path, target: str) -> None:
    """Make the symbolic link at `path` point to `target`, atomically. A folder there is deleted."""
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    if path.is_dir() and not path.is_symlink():
        # `scp -r` and `cp -rL` copy the checkpoint that a link names in place of the link. If the deletion is
        # interrupted, the rest is a leftover, not a file of the user.
        trash = temporary_name(path.with_name(f"step_{path.name}"), "", "trash")
        shutil.rmtree(trash, ignore_errors=True)
        os.rename(path, trash)
        os.replace(temporary, path)
        shutil.rmtree(trash)
    else:
        os.replace(temporary, path)


def _is_of_user(path: Path) -> bool:
    """Whether the path of a link has a file or folder that is neither a link nor a copied checkpoint."""
    return path.exists() and not path.is_symlink() and not (path / MANIFEST).is_file()


def put_aside(folder: Path) -> None:
    """Rename a checkpoint while another one takes its name."""
    aside = _aside(folder)
    shutil.rmtree(aside, ignore_errors=True)
    os.rename(folder, aside)


def take_back(folder: Path) -> None:
    """Undo put_aside, or delete what was put aside if another checkpoint has its name."""
    aside = _aside(folder)
    if folder.exists():
        shutil.rmtree(aside, ignore_errors=True)
    elif aside.exists():
        os.rename(aside, folder)


def _aside(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}{REPLACED}")


def give_name(folder: Path, target: Path, *, replaces: bool, at: FaultPoint = lambda point: None) -> None:
    """Rename a complete folder, and flush the rename to disk. Raises OSError.

    replaces  whether the folder of that name is a good checkpoint, which is deleted afterwards. A damaged one
              is kept under another name
    """
    if target.exists():
        put_aside(target) if replaces else keep_damaged(target)
    try:
        os.rename(folder, target)
    except OSError:
        take_back(target)
        raise
    at("after_rename")
    fsync_path(target.parent)
    if replaces:
        take_back(target)


def remove(folder: Path, nonce: str, at: FaultPoint = lambda point: None) -> None:
    """Delete a checkpoint. It is renamed first, so that no reader sees half of it.

    If it is a symbolic link, only the link is deleted: its target may belong to another run.
    """
    if folder.is_symlink():
        folder.unlink()
        return
    trash = temporary_name(folder, nonce, "trash")
    shutil.rmtree(trash, ignore_errors=True)
    os.rename(folder, trash)
    at("delete")
    (trash / MANIFEST).unlink(missing_ok=True)
    shutil.rmtree(trash)


def matches_manifest(folder: Path) -> bool:
    """Whether every file in the manifest exists with the recorded size and checksum."""
    try:
        files = read_json(folder / MANIFEST)["files"]
        return all(_matches_record(inside(folder, name), facts) for name, facts in files.items())
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return False


def _matches_record(file: Path, facts: dict[str, Any]) -> bool:
    found = file.lstat()
    return stat.S_ISREG(found.st_mode) and found.st_size == facts["bytes"] and crc32(file) == facts["crc32"]


def newest_manifest(run: RunDir) -> dict[str, Any]:
    """The newest readable manifest of a run's checkpoints; empty without one."""
    for step in reversed(run.checkpoint_steps()):
        if manifest := read_object(run.checkpoint(step) / MANIFEST):
            return manifest
    return {}


def step_of_best(run: RunDir) -> int | None:
    """The step of the best checkpoint; None if none was the best.

    Without the link `best` it is the newest that was the best when it was saved.
    """
    if (linked := run.linked_best()) is not None:
        return linked
    steps = reversed(run.checkpoint_steps())
    return next((step for step in steps if read_object(run.checkpoint(step) / MANIFEST).get("best")), None)


def best_named_by(folder: Path) -> int | None:
    """The step of the best checkpoint that this one records; None without one, or if it cannot be read."""
    match read_object(folder / PROGRESS):
        case {"progress": {"best_step": int(step)}}:
            return step
    return None


def renew_last_link(run: RunDir) -> None:
    """Point the link `last` to the newest remaining checkpoint; without checkpoints, delete the link."""
    if run.checkpoints.is_symlink() or not run.last.is_symlink() or run.last.exists():
        return
    steps = run.checkpoint_steps()
    if steps:
        replace_link(run.last, run.checkpoint(steps[-1]).name)
    else:
        run.last.unlink()


def keep_damaged(folder: Path) -> None:
    """Move a checkpoint that does not verify out of the way, but keep it."""
    os.rename(folder, folder.with_name(f".{folder.name}.damaged.{time.time_ns()}"))


def link(run: RunDir, step: int, best_step: int | None) -> None:
    """Update the links to the best and the newest checkpoint. Files of the user with their names stay."""
    for path, each in ((run.best, best_step), (run.last, step)):
        if each is None or not run.checkpoint(each).is_dir():
            continue
        if _is_of_user(path):
            log.warning("%s is not a link to a checkpoint, but its name is needed for one: rename it", path)
        else:
            replace_link(path, run.checkpoint(each).name)


def prune(
    run: RunDir,
    keep: int,
    best_step: int | None,
    compared: int | None,
    nonce: str,
    at: FaultPoint,
    permit: Callable[[], None],
) -> None:
    """Delete all checkpoints but the newest, best and compared ones; called after a new one is complete.

    compared  step up to which the weights are known to be equal on all ranks, or None. The newest checkpoint
              up to it stays, with its best one: all later ones may turn out to be wrong
    permit  called before each deletion; raises if this attempt may no longer delete
    """
    steps = run.checkpoint_steps()
    right = [step for step in steps if compared is not None and step <= compared][-1:]
    kept = {*steps[-keep:], best_step, *right, *(best_named_by(run.checkpoint(step)) for step in right)}
    for step in steps:
        if step not in kept:
            permit()
            remove(run.checkpoint(step), nonce, at)


def clear_leftovers(run: RunDir) -> None:
    """Delete half written and half deleted folders of earlier attempts, and old damaged checkpoints.

    A checkpoint that was put aside gets its name back if its replacement was never finished.
    """
    if run.checkpoints.is_dir():
        for replaced in run.checkpoints.glob(f".step_*{REPLACED}"):
            take_back(replaced.with_name(replaced.name.removeprefix(".").removesuffix(REPLACED)))
        aside = sorted(run.checkpoints.glob(".step_*.damaged.*"), key=lambda folder: folder.suffix)
        half = [*run.checkpoints.glob(".step_*.tmp"), *run.checkpoints.glob(".step_*.trash")]
        for leftover in [*half, *aside[:-_KEPT_ASIDE]]:
            shutil.rmtree(leftover, ignore_errors=True)
