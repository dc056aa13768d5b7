"""Checkpoints of a script. A checkpoint gets its name when it is complete, and is used only if it verifies.

It has files of any kind. The manifest lists each file with its size and CRC-32.
"""

from __future__ import annotations

import logging
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from toolkit.checkpoint.checksums import VERSION, check_file, may_pass
from toolkit.checkpoint.paths import (
    give_name,
    keep_damaged,
    link,
    matches_manifest,
    remove,
    renew_last_link,
    step_of_best,
)
from toolkit.errors import CheckpointError, UserError
from toolkit.files import crc32, fsync_path, read_json, write_json
from toolkit.run.events import note_event
from toolkit.run.fence import leave_if_fenced
from toolkit.run.run_dir import MANIFEST, RunDir, inside
from toolkit.workloads.custom.script.misuse import misuse

log = logging.getLogger("toolkit")


def verify(folder: Path) -> None:
    """Check a checkpoint against its manifest. Raises CheckpointError with the problem."""
    path = folder / MANIFEST
    try:
        files = dict((read_json(path) or {})["files"])
        expected = {inside(folder, name): dict(facts) for name, facts in files.items()}
        for file, facts in expected.items():
            check_file(file, {"bytes": facts["bytes"], "crc32": facts["crc32"]})
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        is_there = isinstance(error, OSError) or path.exists()
        what = f"cannot be read: {error}" if is_there else "is missing"
        raise CheckpointError(f"{path} {what}") from error


def newest_good(run: RunDir) -> int | None:
    """Return the step of the newest checkpoint that verifies; None without checkpoints. Rank 0 calls it.

    Damaged newer checkpoints are set aside; log and events name them with the reason. Raises CheckpointError
    if all are damaged: starting over silently would discard the work. Raises it also if one cannot be read
    now, but perhaps later.
    """
    damaged: list[int] = []
    for step in reversed(run.checkpoint_steps()):
        try:
            verify(run.checkpoint(step))
        except CheckpointError as error:
            if may_pass(error):
                raise
            note_event(run, "checkpoint_rejected", step=step, reason=str(error))
            log.warning("the checkpoint of step %d is not used: %s", step, error)
            damaged.append(step)
            continue
        _set_aside(run, damaged)
        return step
    if damaged:
        raise CheckpointError(
            f"all checkpoints in {run.checkpoints} are damaged (events.jsonl says how); refusing to start "
            "from the beginning. Move the folder away to do that; in a run of `stk`, --fresh does it"
        )
    return None


def _set_aside(run: RunDir, steps: list[int]) -> None:
    """Rename damaged checkpoints: they would count as the newest."""
    for step in steps:
        keep_damaged(run.checkpoint(step))
    if steps:
        renew_last_link(run)
        if run.best.is_symlink() and not run.best.exists():
            run.best.unlink()


def flush(folder: Path) -> None:
    """Flush all regular files of a folder to disk; `commit` refuses others. Raises OSError."""
    for around, _, names in os.walk(folder):
        for path in (os.path.join(around, name) for name in names):
            # Another rank may just rename or delete it.
            with suppress(FileNotFoundError):
                if stat.S_ISREG(os.lstat(path).st_mode):
                    fsync_path(Path(path))
        fsync_path(Path(around))


def commit(run: RunDir, folder: Path, step: int, facts: Mapping[str, Any], nonce: str) -> int:
    """Write the manifest of a flushed folder, and rename it to its checkpoint name; return its size in bytes.

    nonce   names this attempt; the process ends before the rename if another one has replaced it
    Raises UserError for a folder that is not a checkpoint, OSError.
    """
    files = {name: {"bytes": size, "crc32": crc32(folder / name)} for name, size in _files(folder)}
    if not files:
        raise misuse(f"run.checkpoint({step})", "no file was written into its folder")
    write_json(
        folder / MANIFEST, {"version": VERSION, "step": step, "time": time.time(), **facts, "files": files}
    )
    leave_if_fenced(run, nonce)
    target = run.checkpoint(step)
    give_name(folder, target, replaces=matches_manifest(target))
    return sum(each["bytes"] for each in files.values())


def _files(folder: Path) -> Iterator[tuple[str, int]]:
    """Yield the files of a folder, by their names relative to it, with their sizes."""
    for around, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names + [each for each in folders if os.path.islink(os.path.join(around, each))]):
            path = Path(around, name)
            found, relative = path.lstat(), path.relative_to(folder).as_posix()
            if relative == MANIFEST:
                raise UserError(f"your checkpoint has a file {MANIFEST}, which is a reserved name")
            if not stat.S_ISREG(found.st_mode):
                raise UserError(
                    f"your checkpoint has {relative}, which is not a regular file: copy its content"
                )
            yield relative, found.st_size


def tidy(run: RunDir, step: int, *, best: bool, keep: int, nonce: str) -> None:
    """Update the links to the newest and the best checkpoint, and delete old checkpoints.

    best  whether this step's checkpoint is the best so far; the best one is kept
    keep  how many of the newest checkpoints are kept; this step's one is always kept
    """
    try:
        kept = step if best else step_of_best(run)
        link(run, step, kept if best or not run.best.exists() else None)
        steps = run.checkpoint_steps()
        for each in steps:
            if each not in {*steps[-keep:], step, kept}:
                leave_if_fenced(run, nonce)
                remove(run.checkpoint(each), nonce)
    except OSError as error:
        # The new checkpoint is complete; the next save tries again.
        note_event(run, "tidy_failed", step=step, reason=f"{type(error).__name__}: {error}")
        log.warning("cannot tidy %s: %s", run.checkpoints, error)
