"""The manifest of a checkpoint: written last, it lists every file with its size and CRC-32.

PyTorch does not notice a flipped bit, so only checkpoints that verify are loaded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from toolkit.checkpoint.checksums import VERSION, check_file
from toolkit.checkpoint.finished import best_checkpoint
from toolkit.checkpoint.state import Progress
from toolkit.errors import CheckpointError
from toolkit.files import crc32, read_json
from toolkit.run.run_dir import MANIFEST, PROGRESS, TRAINING, WEIGHTS, RunDir

#: Called with (event, facts) for events.jsonl.
Note = Callable[..., None]

#: Seconds for which a network file system may show another host an older folder (acdirmax: 60 s at most).
_STALE_S = 65.0
#: Changed parts of an identity, for a message.
_CHANGED = {"experiment": "another experiment", "data": "other data"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Experiment and data of a checkpoint; a run loads only checkpoints of its own identity."""

    experiment: str
    data: str


class OtherIdentity(CheckpointError):
    """A checkpoint belongs to another experiment, or to other data. It may be intact."""


def verify(folder: Path, identity: Identity | None = None) -> None:
    """Check a checkpoint against its manifest. Raises CheckpointError, OtherIdentity naming the fault."""
    manifest = read_manifest(folder)
    # Checked first, because reading the files takes time.
    if identity is not None:
        _check_identity(folder, manifest, identity)
    for name, expected in manifest["files"].items():
        check_file(folder / name, expected)
    for name in (WEIGHTS, TRAINING):
        _check_format(folder / name)
    read_progress(folder)


def verifies(folder: Path, identity: Identity) -> bool:
    """Whether a folder exists and verifies."""
    if not folder.is_dir():
        return False
    try:
        verify(folder, identity)
    except CheckpointError:
        return False
    return True


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a checkpoint. Raises CheckpointError."""
    try:
        manifest = read_json(folder / MANIFEST)
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{folder / MANIFEST} cannot be read: {error}") from error
    if manifest is None:
        raise CheckpointError(f"{folder} has no {MANIFEST}")
    version = manifest.get("version") if isinstance(manifest, dict) else None
    if version != VERSION:
        raise CheckpointError(
            f"{folder / MANIFEST} is not a manifest of version {VERSION} but of {version!r}: "
            "another version of this program may read it"
        )
    if not _lists_files(manifest):
        raise CheckpointError(f"{folder / MANIFEST} is damaged: it does not list the files")
    return dict(manifest)


def trained_on(run: RunDir) -> str:
    """The fingerprint of a finished run's data. Raises CheckpointError; UserError if it has not finished."""
    return str(read_manifest(best_checkpoint(run)).get("data"))


def read_progress(folder: Path) -> dict[str, Any]:
    """Return the content of a checkpoint besides tensors: progress and scaler. Raises CheckpointError."""
    path = folder / PROGRESS
    try:
        stored = read_json(path)
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error
    known = {field.name for field in fields(Progress)}
    match stored:
        case {"progress": {"step": int()} as progress, "scaler": dict()} if progress.keys() <= known:
            return dict(stored)
    raise CheckpointError(f"{path} does not hold progress and scaler, with {', '.join(sorted(known))}")


def wait_for_manifest(folder: Path, expected_crc32: int) -> None:
    """Wait until this host sees the manifest that rank 0 saw; a network file system may delay it.

    Raises CheckpointError if it sees another one, or none.
    """
    deadline = time.monotonic() + _STALE_S
    while (seen := _seen_crc32(folder)) != expected_crc32:
        if time.monotonic() > deadline:
            fault = seen if isinstance(seen, OSError) else None
            what = "none" if fault else f"another one (CRC-32 {seen:08x})"
            raise CheckpointError(
                f"{folder / MANIFEST}: rank 0 has CRC-32 {expected_crc32:08x}, this host {what}; "
                "is the run folder on a file system that all hosts share?"
            ) from fault
        time.sleep(0.5)


def _seen_crc32(folder: Path) -> int | OSError:
    try:
        # Listing the folder makes the client of a network file system ask its server.
        list(folder.parent.iterdir())
        return crc32(folder / MANIFEST)
    except OSError as error:
        return error


def _lists_files(manifest: Mapping[str, Any]) -> bool:
    files = manifest.get("files")
    return (
        isinstance(files, dict)
        and files.keys() == {WEIGHTS, TRAINING, PROGRESS}
        and all(isinstance(facts, dict) and {"bytes", "crc32"} <= facts.keys() for facts in files.values())
    )


def _check_identity(folder: Path, manifest: Mapping[str, Any], identity: Identity) -> None:
    odd = [what for key, what in _CHANGED.items() if manifest.get(key) != getattr(identity, key)]
    if odd:
        raise OtherIdentity(
            f"{folder} was saved for {' and '.join(odd)}: undo what has changed since (it may be the "
            "version of slurm-toolkit), or continue from it anyway with stk resume --force. With other data, "
            "the rest of the epoch then has some samples twice and lacks others"
        )


def _check_format(file: Path) -> None:
    """Reject any file that is not safetensors, so that a pickle is never loaded."""
    try:
        with safe_open(file, framework="pt"):
            pass
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{file} is not a safetensors file: {error}") from error
