"""Checkpoints that are damaged, or of another run, are reported and never loaded."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.toolkit.support.checkpointing import (
    FILES,
    IDENTITY,
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
from tests.toolkit.support.tiny import events
from toolkit.checkpoint.verification import Identity, OtherIdentity, verify
from toolkit.errors import CheckpointError
from toolkit.run.events import FORCED, note_event
from toolkit.run.run_dir import RunDir

Damage = Callable[[Path], None]


def cut(name: str) -> Damage:
    return lambda folder: truncate(folder / name)


def delete(name: str) -> Damage:
    return lambda folder: (folder / name).unlink()


def zero_a_page(folder: Path) -> None:
    """Zero bytes as after a power failure; the file keeps its size."""
    with open(folder / "model.safetensors", "r+b") as stream:
        stream.seek(-64, os.SEEK_END)
        stream.write(bytes(64))


def empty(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


def manifest_of_a_newer_version(folder: Path) -> None:
    text = (folder / "MANIFEST.json").read_text()
    (folder / "MANIFEST.json").write_text(text.replace('"version": 1', '"version": 2'))


def manifest_without_files(folder: Path) -> None:
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    (folder / "MANIFEST.json").write_text(json.dumps({**manifest, "files": {}}))


DAMAGES = [
    *(pytest.param(cut(name), name, id=f"truncated {name}") for name in (*FILES, "MANIFEST.json")),
    *(pytest.param(delete(name), name, id=f"deleted {name}") for name in (*FILES, "MANIFEST.json")),
    pytest.param(zero_a_page, "model.safetensors", id="zeroed"),
    pytest.param(empty, "MANIFEST.json", id="empty folder"),
    pytest.param(manifest_of_a_newer_version, "version", id="other version"),
    pytest.param(manifest_without_files, "files", id="manifest lists nothing"),
]


@pytest.mark.parametrize("damage, named", DAMAGES)
def test_damaged_checkpoint_is_rejected_and_the_previous_one_is_loaded(
    saved: RunDir, caplog: pytest.LogCaptureFixture, damage: Damage, named: str
) -> None:
    damage(saved.checkpoint(20))
    with pytest.raises(CheckpointError, match=named):
        verify(saved.checkpoint(20))
    assert facts(loaded(saved)) == expected_facts(10)
    (event,) = events(saved, "checkpoint_rejected")
    assert event["step"] == 20
    assert named in event["reason"]
    assert any("step 20 is not used" in line and named in line for line in caplog.messages)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    run = RunDir(tmp_path_factory.mktemp("pristine") / "run")
    run.path.mkdir()
    save(run, 10, 20, best=10)
    return run


@settings(max_examples=80)
@given(
    name=st.sampled_from((*FILES, "MANIFEST.json")),
    place=st.floats(0, 1, exclude_max=True),
    bit=st.integers(0, 7),
)
def test_flipped_bit_is_never_loaded(
    pristine: RunDir, tmp_path_factory: pytest.TempPathFactory, name: str, place: float, bit: int
) -> None:
    """Some bits of the manifest do not matter: then step 20 is good. Others are those of another experiment,
    which is refused. Any other damage leads to step 10.
    """
    run = RunDir(tmp_path_factory.mktemp("flip") / "run")
    shutil.copytree(pristine.path, run.path, symlinks=True)
    path = run.checkpoint(20) / name
    raw = bytearray(path.read_bytes())
    raw[int(place * len(raw))] ^= 1 << bit
    path.write_bytes(raw)
    try:
        state = loaded(run)
    except CheckpointError:
        with pytest.raises(OtherIdentity):
            verify(run.checkpoint(20), IDENTITY)
    else:
        step = state.progress.step
        assert step == 10 or (step == 20 and name == "MANIFEST.json")
        assert facts(state) == expected_facts(step)
    shutil.rmtree(run.path.parent)


def test_load_fails_if_every_checkpoint_is_damaged(saved: RunDir) -> None:
    for step in (10, 20):
        cut("model.safetensors")(saved.checkpoint(step))
    # However often it is tried.
    for _ in range(2):
        with pytest.raises(CheckpointError, match=r"scratch, use --fresh.* The newest: .*model\.safetensors"):
            checkpoints(saved).load_latest(new_state())
    assert saved.checkpoint_steps() == [10, 20]
    assert [event["step"] for event in events(saved, "checkpoint_rejected")] == [20, 10, 20, 10]


@pytest.mark.parametrize(
    "identity, named",
    [
        (Identity(experiment="e2", data="d1"), "saved for another experiment"),
        (Identity(experiment="e1", data="d2"), "saved for other data"),
        (Identity(experiment="e2", data="d2"), "saved for another experiment and other data"),
    ],
)
def test_checkpoint_of_another_experiment_or_other_data_is_refused(
    saved: RunDir, identity: Identity, named: str
) -> None:
    with pytest.raises(CheckpointError, match=f"{named}.*stk resume --force"):
        checkpoints(saved, identity=identity).load_latest(new_state())
    assert {named in event["reason"] for event in events(saved, "checkpoint_rejected")} == {True}


def test_forced_resume_loads_a_checkpoint_of_other_data(saved: RunDir) -> None:
    note_event(saved, FORCED, steps=[10, 20])
    others = Identity(experiment="e2", data="d2")
    state = new_state()
    assert checkpoints(saved, identity=others).load_latest(state)
    assert facts(state) == expected_facts(20)
    cut("model.safetensors")(saved.checkpoint(20))
    state = new_state()
    assert checkpoints(saved, identity=others).load_latest(state)
    assert facts(state) == expected_facts(10)


@pytest.mark.parametrize("damaged", [(), (40,)])
def test_forced_checkpoint_is_not_taken_in_place_of_a_newer_one_of_other_data(
    saved: RunDir, damaged: tuple[int, ...]
) -> None:
    """The steps since the forced resumption would be lost. Only damage leads to an older checkpoint."""
    note_event(saved, FORCED, steps=[10, 20])
    for step in (30, 40):
        save_state(saved, state_at(step), Identity(experiment="e1", data="d2"), keep=9)
    for step in damaged:
        delete("MANIFEST.json")(saved.checkpoint(step))
    with pytest.raises(CheckpointError, match=r"saved for other data.*stk resume --force"):
        checkpoints(saved, identity=Identity(experiment="e1", data="d3")).load_latest(new_state())
    assert saved.checkpoint_steps() == [10, 20, 30, 40]


def test_save_replaces_a_checkpoint_of_other_data_at_the_same_step(saved: RunDir) -> None:
    """Otherwise this run would keep weights that were trained on other data."""
    mine = Identity(experiment="e1", data="d2")
    save_state(saved, state_at(20), mine)
    verify(saved.checkpoint(20), mine)


def test_damaged_checkpoints_do_not_count_among_the_checkpoints_to_keep(run: RunDir) -> None:
    """Both damaged checkpoints are newer than the one that the run resumes from."""
    save(run, 10, 30, 40, best=10)
    cut("model.safetensors")(run.checkpoint(30))
    delete("progress.json")(run.checkpoint(40))
    assert loaded(run).progress.step == 10
    save(run, 15)
    assert loaded(run).progress.step == 15
    save(run, 30, 40, 50)
    assert run.checkpoint_steps() == [40, 50]
    for step in run.checkpoint_steps():
        verify(run.checkpoint(step), IDENTITY)
