"""Checkpoints: complete or absent, verified when loaded.

A save writes into a hidden folder, flushes every file, writes a manifest with sizes and CRC-32s,
flushes, and renames; so a name `step_…` means complete. A load takes the newest whose manifest
verifies, because nothing in PyTorch notices a flipped bit.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, load_model, save_file, save_model

from toolkit.distributed import Group
from toolkit.errors import CheckpointError
from toolkit.files import crc32, fsync_dir, read_json, write_json
from toolkit.rundir import RunDir
from toolkit.state import TrainState

VERSION = 1
WEIGHTS, TRAINING, PROGRESS, MANIFEST = (
    "model.safetensors",
    "training.safetensors",
    "progress.json",
    "MANIFEST.json",
)

#: Called with (event, facts) for events.jsonl.
Note = Callable[..., None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What a checkpoint must have in common with the run that loads it."""

    experiment: str
    data: str


def verify(folder: Path, identity: Identity | None = None) -> None:
    """Check a checkpoint against its manifest. Raises CheckpointError, which names the fault."""
    manifest = _manifest(folder)
    for name, expected in manifest["files"].items():
        file = folder / name
        if not file.is_file():
            raise CheckpointError(f"{file} is missing")
        if file.stat().st_size != expected["bytes"]:
            raise CheckpointError(f"{file} has {file.stat().st_size} bytes, expected {expected['bytes']}")
        if crc32(file) != expected["crc32"]:
            raise CheckpointError(f"{file} is damaged: its checksum differs from the manifest")
    if identity is not None:
        _check_identity(folder, manifest, identity)


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = read_json(folder / MANIFEST)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{folder / MANIFEST} cannot be read: {error}") from error
    if manifest is None:
        raise CheckpointError(f"{folder} has no {MANIFEST}")
    if not isinstance(manifest, dict) or manifest.get("version") != VERSION:
        raise CheckpointError(f"{folder / MANIFEST} is not a manifest of version {VERSION}")
    if not _lists_files(manifest):
        raise CheckpointError(f"{folder / MANIFEST} is damaged: it does not list the files")
    return manifest


def _lists_files(manifest: dict[str, Any]) -> bool:
    files = manifest.get("files")
    return (
        isinstance(files, dict)
        and files.keys() == {WEIGHTS, TRAINING, PROGRESS}
        and all(isinstance(facts, dict) and {"bytes", "crc32"} <= facts.keys() for facts in files.values())
    )


def _check_identity(folder: Path, manifest: dict[str, Any], identity: Identity) -> None:
    for what, expected in (("experiment", identity.experiment), ("data", identity.data)):
        if manifest.get(what) != expected:
            raise CheckpointError(f"{folder} belongs to {what} {manifest.get(what)}, this run is {expected}")


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(self, run: RunDir, group: Group, identity: Identity, keep: int, note: Note) -> None:
        self._run = run
        self._group = group
        self._identity = identity
        self._keep = keep
        self._note = note
        self.seconds = 0.0

    def is_due(self) -> bool:
        """Whether it is time for a save between those of the calendar. On rank 0; elsewhere never."""
        return False

    def wait(self) -> None:
        """Return when what was saved last lies on the disk. Raises CheckpointError where it does not."""

    def save(self, state: TrainState, *, needed: bool = True) -> None:
        """Write a checkpoint of this step, unless there is one. Rank 0 writes; not collective.

        Raises CheckpointError where it cannot be written; the ones before are untouched then.
        """
        if not self._group.world.is_main:
            return
        step, started = state.progress.step, time.monotonic()
        target = self._run.checkpoint(step)
        try:
            if not _is_sound(target, self._identity):
                self._write(state, target)
            self._link(state.progress.best_step, step)
            self._prune(state.progress.best_step)
        except (OSError, SafetensorError) as error:
            reason = getattr(error, "strerror", None) or error
            raise CheckpointError(f"cannot write {target}: {reason}") from error
        self._note("save", step=step, seconds=round(time.monotonic() - started, 4))

    def _write(self, state: TrainState, target: Path) -> None:
        temporary = target.with_name(f".{target.name}.tmp")
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        save_model(state.model, str(temporary / WEIGHTS))
        save_file(
            {name: tensor.detach().contiguous() for name, tensor in state.training_tensors().items()},
            str(temporary / TRAINING),
        )
        write_json(
            temporary / PROGRESS,
            {"progress": state.progress.to_json(), "scaler": state.scaler.state_dict()},
        )
        _write_manifest(temporary, state.progress.step, self._group.world.size, self._identity)
        if target.exists():
            _set_aside(target)
        os.rename(temporary, target)
        fsync_dir(target.parent)

    def _link(self, best_step: int | None, step: int) -> None:
        _point(self._run.last, self._run.checkpoint(step).name)
        if best_step is not None and self._run.checkpoint(best_step).is_dir():
            _point(self._run.best, self._run.checkpoint(best_step).name)

    def _prune(self, best_step: int | None) -> None:
        kept = {*self._run.checkpoint_steps()[-self._keep :], best_step}
        for step in self._run.checkpoint_steps():
            if step not in kept:
                _remove(self._run.checkpoint(step))

    def load_latest(self, state: TrainState) -> bool:
        """Load the newest checkpoint that verifies; False where there is none at all. Collective.

        Rank 0 decides and tells the others. Raises CheckpointError where there are checkpoints but
        all are bad: starting from nothing would throw the work away silently.
        """
        step = self._group.agree(self._newest_sound() if self._group.world.is_main else None)
        if step == "none":
            return False
        if step == "all bad":
            raise CheckpointError(
                f"all checkpoints in {self._run.checkpoints} are damaged (events.jsonl says how); "
                "refusing to start from scratch. Move the folder away, or use --fresh, to do that."
            )
        load(self._run.checkpoint(int(step)), state)
        return True

    def _newest_sound(self) -> int | str:
        self._clear_leftovers()
        steps = self._run.checkpoint_steps()
        for step in reversed(steps):
            try:
                verify(self._run.checkpoint(step), self._identity)
            except CheckpointError as error:
                self._note("checkpoint_rejected", step=step, reason=str(error))
            else:
                # Or they would count as the newest, and what is saved from here on would make room for them.
                for rejected in steps[steps.index(step) + 1 :]:
                    _set_aside(self._run.checkpoint(rejected))
                return step
        return "all bad" if steps else "none"

    def _clear_leftovers(self) -> None:
        if self._run.checkpoints.is_dir():
            for leftover in self._run.checkpoints.glob(".step_*.tmp"):
                shutil.rmtree(leftover, ignore_errors=True)


def load(folder: Path, state: TrainState) -> None:
    """Load a checkpoint into a state, in place. Says nothing of its health: verify first."""
    load_weights(folder, state.model)
    state.load_training_tensors(load_file(str(folder / TRAINING)))
    stored = read_json(folder / PROGRESS)
    state.progress.restore(stored["progress"])
    if stored["scaler"]:
        state.scaler.load_state_dict(stored["scaler"])


def load_weights(folder: Path, model: torch.nn.Module) -> None:
    """Load the weights alone, in place."""
    load_model(model, str(folder / WEIGHTS))


def _is_sound(folder: Path, identity: Identity) -> bool:
    if not folder.is_dir():
        return False
    try:
        verify(folder, identity)
    except CheckpointError:
        return False
    return True


def _set_aside(folder: Path) -> None:
    """Keep what does not verify for the curious, out of the way."""
    os.rename(folder, folder.with_name(f".{folder.name}.damaged.{time.time_ns()}"))


def _write_manifest(folder: Path, step: int, world_size: int, identity: Identity) -> None:
    files = {}
    for file in sorted(folder.iterdir()):
        with open(file, "rb") as stream:
            os.fsync(stream.fileno())
        files[file.name] = {"bytes": file.stat().st_size, "crc32": crc32(file)}
    manifest = {
        "version": VERSION,
        "step": step,
        "experiment": identity.experiment,
        "data": identity.data,
        "world_size": world_size,
        "torch": torch.__version__,
        "files": files,
    }
    write_json(folder / MANIFEST, manifest)


def _point(link: Path, target: str) -> None:
    """Make a link point elsewhere, in one step."""
    temporary = link.with_name(f".{link.name}.tmp")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    os.replace(temporary, link)


def _remove(folder: Path) -> None:
    """Take a checkpoint away under another name first, so that half of one is never seen."""
    trash = folder.with_name(f".{folder.name}.tmp")
    os.rename(folder, trash)
    shutil.rmtree(trash)
