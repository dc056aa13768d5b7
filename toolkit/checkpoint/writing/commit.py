"""Putting a checkpoint on the disk: complete under its name, or not at all.

Hidden folder, write, fsync of each file, manifest last, fsync of the folder, rename, fsync of the
parent. A checkpoint goes the other way: renamed first, deleted then.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import torch

from toolkit.checkpoint.manifest import VERSION
from toolkit.checkpoint.paths import FaultPoint, put_aside, remove, replace_link, take_back, temporary_name
from toolkit.checkpoint.writing.direct_io import Output
from toolkit.checkpoint.writing.staging import Staging
from toolkit.files import fsync_dir, write_json
from toolkit.run.run_dir import MANIFEST, REPLACED, RunDir

#: Free space that must be there, as a multiple of the size of a checkpoint.
_ROOM = 1.2

#: Damaged checkpoints that are kept for inspection: they take room.
_KEPT_ASIDE = 2


def commit(
    staging: Staging,
    target: Path,
    facts: Mapping[str, Any],
    *,
    nonce: str,
    at: FaultPoint,
    permit: Callable[[], None],
    replaces: bool = False,
) -> None:
    """Write what is staged, flushed to disk, and give it its name.

    facts   added to the manifest
    nonce   names this start, so that no other one writes into the same hidden folder
    permit  raises where this start may not write any more; asked right before the rename
    replaces  whether the folder of that name is a good checkpoint, which is deleted afterwards. A damaged one
              is kept under another name
    Raises OSError, or what `permit` raises; nothing is left then.
    """
    folder = temporary_name(target, nonce, "tmp")
    if not target.parent.is_dir():
        target.parent.mkdir(exist_ok=True)
        fsync_dir(target.parent.parent)
    _check_room(target.parent, staging.size)
    shutil.rmtree(folder, ignore_errors=True)
    try:
        _write_folder(staging, folder, facts, at)
        permit()
        _give_name(folder, target, replaces)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    at("after_rename")
    fsync_dir(target.parent)
    if replaces:
        take_back(target)


def _give_name(folder: Path, target: Path, replaces: bool) -> None:
    """Rename a complete folder. What has the name moves out of the way first."""
    if target.exists():
        put_aside(target) if replaces else keep_damaged(target)
    try:
        os.rename(folder, target)
    except OSError:
        take_back(target)
        raise


def _write_folder(staging: Staging, folder: Path, facts: Mapping[str, Any], at: FaultPoint) -> None:
    """The files, each flushed, and the manifest after them."""
    at("open")
    folder.mkdir()
    started = time.monotonic()
    files = {name: _write_file(folder / name, pieces, at) for name, pieces in staging.files().items()}
    at("before_manifest")
    manifest = {
        "version": VERSION,
        "step": staging.step,
        "chain": staging.chain,
        **facts,
        "torch": torch.__version__,
        "save_seconds": round(time.monotonic() - started, 4),
        "files": files,
    }
    write_json(folder / MANIFEST, manifest)
    at("after_manifest")
    fsync_dir(folder)


def keep_damaged(folder: Path) -> None:
    """Move a checkpoint that does not verify out of the way, but keep it."""
    os.rename(folder, folder.with_name(f".{folder.name}.damaged.{time.time_ns()}"))


def link(run: RunDir, step: int, best_step: int | None) -> None:
    """Update the links to the newest and the best checkpoint."""
    replace_link(run.last, run.checkpoint(step).name)
    if best_step is not None and run.checkpoint(best_step).is_dir():
        replace_link(run.best, run.checkpoint(best_step).name)


def prune(
    run: RunDir, keep: int, best_step: int | None, nonce: str, at: FaultPoint, permit: Callable[[], None]
) -> None:
    """Delete all checkpoints but the newest and the best; called only after a new one is complete.

    permit  raises where this start may not do so any more; asked before each
    """
    steps = run.checkpoint_steps()
    for step in steps:
        if step not in {*steps[-keep:], best_step}:
            permit()
            remove(run.checkpoint(step), nonce, at)


def clear_leftovers(run: RunDir) -> None:
    """Delete half written and half deleted folders of earlier attempts, and old ones that were set aside.

    A checkpoint that was put aside gets its name back if its replacement was never finished.
    """
    if run.checkpoints.is_dir():
        for replaced in run.checkpoints.glob(f".step_*{REPLACED}"):
            take_back(replaced.with_name(replaced.name.removeprefix(".").removesuffix(REPLACED)))
        aside = sorted(run.checkpoints.glob(".step_*.damaged.*"), key=lambda folder: folder.suffix)
        half = [*run.checkpoints.glob(".step_*.tmp"), *run.checkpoints.glob(".step_*.trash")]
        for leftover in [*half, *aside[:-_KEPT_ASIDE]]:
            shutil.rmtree(leftover, ignore_errors=True)


def _check_room(parent: Path, size: int) -> None:
    free, wanted = shutil.disk_usage(parent).free, _ROOM * size
    if free < wanted:
        problem = f"{free / 1e6:,.1f} MB are free, {wanted / 1e6:,.1f} MB are needed"
        raise OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)}: {problem}")


def _write_file(path: Path, pieces: Iterable[memoryview], at: FaultPoint) -> dict[str, int]:
    """Write and flush a file; its size and CRC-32, of the bytes as they were in memory."""
    size = checksum = 0
    with closing(Output(path)) as output:
        for piece in pieces:
            # Both calls release the GIL: training continues meanwhile.
            checksum = zlib.crc32(piece, checksum)
            output.write(piece)
            size += len(piece)
            at("write")
        at("before_fsync")
        output.flush()
        at("after_fsync")
    return {"bytes": size, "crc32": checksum}
