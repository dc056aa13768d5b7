"""Which checkpoint an attempt goes on from, what it refuses, and that all ranks mean the same one."""

from __future__ import annotations

import errno
import json
import os
import pickle
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.toolkit.support.checkpointing import (
    checkpoints,
    expected_facts,
    facts,
    loaded,
    new_state,
    save,
    save_state,
    state_at,
    truncate,
)
from tests.toolkit.support.ranks import in_ranks, joined
from tests.toolkit.support.tiny import events
from toolkit.checkpoint.loading.load import load
from toolkit.checkpoint.verification import verify, wait_for_manifest
from toolkit.errors import CheckpointError
from toolkit.files import crc32
from toolkit.run.failure.classes import class_of
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World


def rewrite(folder: Path, name: str, raw: bytes) -> None:
    """Replace a file and make the manifest agree, as an attacker can and random damage cannot."""
    (folder / name).write_bytes(raw)
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    manifest["files"][name] = {"bytes": len(raw), "crc32": zlib.crc32(raw)}
    (folder / "MANIFEST.json").write_text(json.dumps(manifest))


def test_newest_checkpoint_is_found_although_the_folder_is_listed_as_it_was(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a network file system, on a host that trained the run before another host did."""
    for step in (5, 10):
        save(run, step)
    monkeypatch.setattr(RunDir, "checkpoint_steps", lambda run: [5])
    assert loaded(run).progress.step == 10


# -- the best one ----------------------------------------------------------------------------------


def test_checkpoint_with_a_damaged_best_one_is_skipped_for_an_older_checkpoint(run: RunDir) -> None:
    """Resuming from step 5 leads to the same step 10 and to the same result."""
    for step, best in ((5, 5), (10, 10), (20, 10)):
        state = state_at(step)
        state.progress.best_step = best
        save_state(run, state, keep=3)
    truncate(run.checkpoint(10) / "model.safetensors")
    assert loaded(run).progress.step == 5
    assert run.checkpoint_steps() == [5]
    newer, older = events(run, "checkpoint_rejected")
    assert (newer["step"], older["step"]) == (20, 10)
    assert "is intact, but the best one that it names is not" in newer["reason"]
    assert "step_00000010/model.safetensors" in newer["reason"]


def test_run_resumes_without_its_best_if_no_older_checkpoint_is_left(saved: RunDir) -> None:
    truncate(saved.checkpoint(10) / "model.safetensors")
    state = loaded(saved)
    assert facts(state)[0] == expected_facts(20)[0]
    assert (state.progress.step, state.progress.best_step, state.progress.best_value) == (20, None, None)
    assert [event["step"] for event in events(saved, "best_lost")] == [20]
    assert saved.checkpoint_steps() == [20]
    save(saved, 30, best=30)
    assert saved.checkpoint_steps() == [20, 30]
    assert saved.best.resolve() == saved.checkpoint(30)


@pytest.mark.parametrize("number, is_kept", [(errno.ESTALE, True), (errno.EIO, False)])
def test_checkpoint_that_cannot_be_read_for_a_moment_is_kept(
    saved: RunDir, monkeypatch: pytest.MonkeyPatch, number: int, is_kept: bool
) -> None:
    """As by a server that restarts. A bad sector stays bad, so an older checkpoint is taken."""
    newest = saved.checkpoint(20)

    def read(path: Path) -> int:
        if path.parent == newest:
            raise OSError(number, os.strerror(number), path)
        return crc32(path)

    monkeypatch.setattr("toolkit.checkpoint.checksums.crc32", read)
    if is_kept:
        with pytest.raises(CheckpointError) as raised:
            loaded(saved)
        assert class_of(raised.value) == "io"
        assert newest.is_dir()
    else:
        assert loaded(saved).progress.step == 10


# -- hostile files ---------------------------------------------------------------------------------


class Payload:
    """Runs a command when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        return os.system, (f"touch {self._path}",)


@pytest.fixture
def no_unpickling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever opens a pickle fails the test."""

    def refuse(*arguments: Any) -> None:
        raise AssertionError("something was unpickled")

    class Refusing(pickle._Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            refuse()

    monkeypatch.setattr(pickle, "Unpickler", Refusing)
    monkeypatch.setattr(pickle, "load", refuse)
    monkeypatch.setattr(pickle, "loads", refuse)
    monkeypatch.setattr(torch, "load", refuse)


def bare_pickle(path: Path) -> bytes:
    return pickle.dumps(Payload(path))


def torch_file(path: Path) -> bytes:
    file = path.with_suffix(".pt")
    torch.save({"weight": Payload(path)}, file)
    return file.read_bytes()


@pytest.mark.parametrize("make", [bare_pickle, torch_file])
@pytest.mark.parametrize("name", ["model.safetensors", "training.safetensors"])
def test_pickle_is_refused_and_never_opened(
    saved: RunDir, tmp_path: Path, request: pytest.FixtureRequest, name: str, make: Callable[[Path], bytes]
) -> None:
    proof = tmp_path / "executed"
    raw = make(proof)
    # It is armed.
    pickle.loads(bare_pickle(tmp_path / "armed"))
    assert (tmp_path / "armed").exists()
    rewrite(saved.checkpoint(20), name, raw)
    request.getfixturevalue("no_unpickling")
    assert loaded(saved).progress.step == 10
    assert not proof.exists()
    (event,) = events(saved, "checkpoint_rejected")
    assert f"{name} is not a safetensors file" in event["reason"]


@pytest.mark.parametrize("name", [os.path.abspath, lambda path: f"../../../{path.name}"])
def test_manifest_with_a_file_outside_the_checkpoint_is_refused(
    saved: RunDir, name: Callable[[Path], str]
) -> None:
    folder, outside = saved.checkpoint(20), saved.path.parent / "outside"
    outside.write_bytes(b"of somebody")
    assert (folder / name(outside)).samefile(outside)
    rewrite(folder, name(outside), b"of somebody")
    with pytest.raises(CheckpointError, match="does not list the files"):
        verify(folder)
    assert loaded(saved).progress.step == 10


@pytest.mark.parametrize("text", ['{"progress": {"chain": "", "__class__": 1}}', "[]", "{", "{}"])
def test_invalid_progress_file_is_refused(saved: RunDir, text: str) -> None:
    rewrite(saved.checkpoint(20), "progress.json", text.encode())
    assert loaded(saved).progress.step == 10
    assert "progress.json" in events(saved, "checkpoint_rejected")[0]["reason"]


def test_weights_of_another_model_are_refused_by_name(saved: RunDir) -> None:
    state = new_state()
    state.model = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 3))
    with pytest.raises(CheckpointError, match=r"step_00000020/model.safetensors does not fit this .*--fresh"):
        load(saved.checkpoint(20), state)


# -- other runs and other hosts --------------------------------------------------------------------


def test_host_refuses_a_different_or_missing_manifest(saved: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = saved.checkpoint(20)
    wait_for_manifest(folder, crc32(folder / "MANIFEST.json"))
    monkeypatch.setattr("toolkit.checkpoint.verification._STALE_S", 0.0)
    with pytest.raises(CheckpointError, match="this host another one"):
        wait_for_manifest(folder, 1)
    with pytest.raises(CheckpointError, match="this host none"):
        wait_for_manifest(saved.checkpoint(30), 1)


def stale(path: Path) -> int:
    """As by a network file system whose server has been started again."""
    raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), path)


def test_host_that_cannot_read_the_manifest_fails_as_its_disk_does(
    saved: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolkit.checkpoint.verification._STALE_S", 0.0)
    monkeypatch.setattr("toolkit.checkpoint.verification.crc32", stale)
    with pytest.raises(CheckpointError, match="this host none") as raised:
        wait_for_manifest(saved.checkpoint(20), 1)
    assert class_of(raised.value) == "io"


def failure_of_load(world: World, folder: Path, is_damaged: bool) -> str:
    """The class of the failure of a rank, each on a host of its own, if host 1 cannot read the checkpoint."""
    placed = replace(world, local_rank=0, local_size=1, node=world.rank, nodes=2)
    with joined(world, folder) as group, pytest.MonkeyPatch.context() as patch:
        if not world.is_main:
            read = (lambda path: 0) if is_damaged else stale
            patch.setattr("toolkit.checkpoint.checksums.crc32", read)
        with pytest.raises(CheckpointError) as raised:
            checkpoints(RunDir(folder), replace(group, world=placed)).load_latest(new_state())
    return class_of(raised.value)


@pytest.mark.parametrize("is_damaged, kind", [(False, "io"), (True, "checkpoint")])
def test_all_ranks_fail_as_the_host_that_cannot_read_the_checkpoint(
    saved: RunDir, is_damaged: bool, kind: str
) -> None:
    assert in_ranks(2, failure_of_load, saved.path, is_damaged) == [kind, kind]


def test_host_that_sees_the_manifest_late_waits_for_it(
    saved: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, hidden = saved.checkpoint(20), saved.path / "not yet"
    expected = crc32(folder / "MANIFEST.json")
    folder.rename(hidden)
    monkeypatch.setattr("toolkit.checkpoint.verification.time.sleep", lambda seconds: hidden.rename(folder))
    wait_for_manifest(folder, expected)


def test_manifest_records_chain_checksum_step_and_world_size(run: RunDir) -> None:
    state = state_at(7)
    state.progress.chain = "0123456789abcdef" * 2
    save_state(run, state)
    manifest = json.loads((run.checkpoint(7) / "MANIFEST.json").read_text())
    assert manifest["chain"] == state.progress.chain
    assert manifest["files"]["model.safetensors"]["crc32"] == crc32(run.checkpoint(7) / "model.safetensors")
    assert (manifest["step"], manifest["world_size"]) == (7, 1)
    assert manifest["save_seconds"] >= 0
