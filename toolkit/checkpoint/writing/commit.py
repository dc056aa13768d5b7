"""Putting a checkpoint on the disk: complete under its name, or not at all.

Hidden folder, write, fsync of each file, manifest last, fsync of the folder, rename, fsync of the
parent.
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

from toolkit.checkpoint.checksums import VERSION
from toolkit.checkpoint.paths import FaultPoint, give_name, temporary_name
from toolkit.checkpoint.writing.direct_io import Output
from toolkit.checkpoint.writing.staging import Staging
from toolkit.files import fsync_path, write_json
from toolkit.run.run_dir import MANIFEST

#: Required free space, as a multiple of the size of a checkpoint.
_ROOM = 1.2


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
    """Write the staged checkpoint, flush it to disk, and give it its name.

    facts   added to the manifest
    nonce   names this attempt, so that no other one writes into the same hidden folder
    permit  called right before the rename; raises if this attempt may no longer write
    replaces  whether the folder of that name is a good checkpoint
    Raises OSError, or the error of `permit`; then nothing is left behind.
    """
    folder = temporary_name(target, nonce, "tmp")
    if not target.parent.is_dir():
        target.parent.mkdir(exist_ok=True)
        fsync_path(target.parent.parent)
    _check_room(target.parent, staging.size)
    shutil.rmtree(folder, ignore_errors=True)
    try:
        _write_folder(staging, folder, facts, at)
        permit()
        give_name(folder, target, replaces=replaces, at=at)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _write_folder(staging: Staging, folder: Path, facts: Mapping[str, Any], at: FaultPoint) -> None:
    """Write and flush the files, then the manifest."""
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
    fsync_path(folder)


def _check_room(parent: Path, size: int) -> None:
    free, wanted = shutil.disk_usage(parent).free, _ROOM * size
    if free < wanted:
        problem = f"{free / 2**20:,.3f} MB are free, {wanted / 2**20:,.3f} MB are needed"
        raise OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)}: {problem}")


def _write_file(path: Path, pieces: Iterable[memoryview], at: FaultPoint) -> dict[str, int]:
    """Write and flush a file; return size and CRC-32, computed from the bytes in memory."""
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
