"""A checkpoint is complete or absent; what is loaded is what was saved, to the bit."""

from __future__ import annotations

import json
import os
import random
import re
import resource
import shutil
import signal
import struct
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from tests.toolkit.ranks import in_ranks, run_ranks
from tests.toolkit.tiny import events
from toolkit import distributed
from toolkit.checkpoint import Checkpoints, Identity, load, load_weights, verify
from toolkit.config.schema import Optimizer, Train
from toolkit.distributed import Group
from toolkit.errors import CheckpointError
from toolkit.events import note_event
from toolkit.optim import build_optimizer
from toolkit.rundir import RunDir
from toolkit.state import Progress, TrainState
from toolkit.world import World

IDENTITY = Identity(experiment="e1", data="d1")
FILES = ("model.safetensors", "training.safetensors", "progress.json")

Damage = Callable[[Path], None]
Facts = tuple[dict[str, list[float]], dict[str, Any], dict[str, Any]]


def new_state() -> TrainState:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    model.register_buffer("seen", torch.zeros(2), persistent=False)
    scaler = torch.amp.GradScaler("cpu", enabled=True)
    return TrainState(Progress(), model, build_optimizer(model, Optimizer()), scaler)


def state_at(step: int) -> TrainState:
    """A state whose every number follows from the step."""
    state = new_state()
    torch.manual_seed(step)
    for _ in range(2):
        state.optimizer.zero_grad()
        state.model(torch.randn(5, 4)).square().sum().backward()
        state.optimizer.step()
    state.model.get_buffer("seen").fill_(step)
    state.scaler.scale(torch.zeros(1))
    state.scaler.update(2.0**step)
    state.progress = Progress(step=step, sums={"loss": step / 3}, best_value=1 / step, best_step=step)
    return state


def facts(state: TrainState) -> Facts:
    tensors = {**state.model.state_dict(), **state.training_tensors()}
    return (
        {name: value.double().flatten().tolist() for name, value in tensors.items()},
        state.progress.to_json(),
        state.scaler.state_dict(),
    )


def checkpoints(
    run: RunDir, group: Group | None = None, identity: Identity = IDENTITY, keep: int = 2
) -> Checkpoints:
    group = group or Group(World.single(), torch.device("cpu"))
    return Checkpoints(run, group, identity, keep, lambda event, **facts: note_event(run, event, **facts))


def save(run: RunDir, *steps: int, best: int | None = None) -> None:
    for step in steps:
        state = state_at(step)
        state.progress.best_step = best
        checkpoints(run).save(state)


def loaded(run: RunDir) -> TrainState:
    state = new_state()
    assert checkpoints(run).load_latest(state)
    return state


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return RunDir(tmp_path / "run")


@pytest.fixture
def saved(run: RunDir) -> RunDir:
    """With checkpoints of step 10 and step 20."""
    run.path.mkdir()
    save(run, 10, 20, best=10)
    return run


def test_load_restores_weights_optimizer_buffers_scaler_and_progress(run: RunDir) -> None:
    run.path.mkdir()
    state = state_at(7)
    checkpoints(run).save(state)
    assert facts(loaded(run)) == facts(state)
    assert loaded(run).progress == state.progress


def test_run_without_checkpoints_starts_from_nothing(run: RunDir) -> None:
    state = new_state()
    before = facts(state)
    assert not checkpoints(run).load_latest(state)
    assert facts(state) == before


def test_newest_is_loaded_and_links_point_at_newest_and_best(saved: RunDir) -> None:
    assert loaded(saved).progress.step == 20
    assert saved.last.resolve() == saved.checkpoint(20)
    assert saved.best.resolve() == saved.checkpoint(10)
    assert not os.path.isabs(os.readlink(saved.last))


def test_checkpoint_holds_safetensors_and_json_and_no_pickle(saved: RunDir) -> None:
    folder = saved.checkpoint(20)
    assert {file.name for file in folder.iterdir()} == {*FILES, "MANIFEST.json"}
    for file in folder.glob("*.json"):
        assert isinstance(json.loads(file.read_text()), dict)
    for file in folder.glob("*.safetensors"):
        raw = file.read_bytes()
        (size,) = struct.unpack("<Q", raw[:8])
        header = json.loads(raw[8 : 8 + size])
        assert all(
            {"dtype", "shape", "data_offsets"} == facts.keys()
            for name, facts in header.items()
            if name != "__metadata__"
        )
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    assert (manifest["step"], manifest["experiment"], manifest["data"]) == (20, "e1", "d1")
    assert manifest["files"].keys() == set(FILES)


def truncate(name: str) -> Damage:
    return lambda folder: os.truncate(folder / name, (folder / name).stat().st_size - 2)


def delete(name: str) -> Damage:
    return lambda folder: (folder / name).unlink()


def zero_a_page(folder: Path) -> None:
    """As a host that lost its power may leave it; the size stays."""
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
    *(pytest.param(truncate(name), name, id=f"truncated {name}") for name in (*FILES, "MANIFEST.json")),
    *(pytest.param(delete(name), name, id=f"deleted {name}") for name in (*FILES, "MANIFEST.json")),
    pytest.param(zero_a_page, "model.safetensors", id="zeroed"),
    pytest.param(empty, "MANIFEST.json", id="empty folder"),
    pytest.param(manifest_of_a_newer_version, "version", id="other version"),
    pytest.param(manifest_without_files, "files", id="manifest lists nothing"),
]


@pytest.mark.parametrize("damage, named", DAMAGES)
def test_damaged_checkpoint_is_named_and_the_one_before_is_used(
    saved: RunDir, damage: Damage, named: str
) -> None:
    damage(saved.checkpoint(20))
    with pytest.raises(CheckpointError, match=named):
        verify(saved.checkpoint(20))
    assert facts(loaded(saved)) == expected_facts(10)
    (event,) = events(saved, "checkpoint_rejected")
    assert event["step"] == 20
    assert named in event["reason"]


@cache
def expected_facts(step: int) -> Facts:
    """What a checkpoint of this step in `pristine` holds."""
    state = state_at(step)
    state.progress.best_step = 10
    return facts(state)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    run = RunDir(tmp_path_factory.mktemp("pristine") / "run")
    run.path.mkdir()
    save(run, 10, 20, best=10)
    return run


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    name=st.sampled_from((*FILES, "MANIFEST.json")),
    place=st.floats(0, 1, exclude_max=True),
    bit=st.integers(0, 7),
)
def test_flipped_bit_is_never_loaded(
    pristine: RunDir, tmp_path_factory: pytest.TempPathFactory, name: str, place: float, bit: int
) -> None:
    """In the manifest some bits matter to nobody; then the files are good, and all else is step 10."""
    run = RunDir(tmp_path_factory.mktemp("flip") / "run")
    shutil.copytree(pristine.path, run.path, symlinks=True)
    path = run.checkpoint(20) / name
    raw = bytearray(path.read_bytes())
    raw[int(place * len(raw))] ^= 1 << bit
    path.write_bytes(raw)
    state = loaded(run)
    step = state.progress.step
    assert step == 10 or (step == 20 and name == "MANIFEST.json")
    assert facts(state) == expected_facts(step)
    shutil.rmtree(run.path.parent)


def test_all_damaged_is_an_error_and_never_a_fresh_start(saved: RunDir) -> None:
    for step in (10, 20):
        truncate("model.safetensors")(saved.checkpoint(step))
    # However often it is tried.
    for _ in range(2):
        with pytest.raises(CheckpointError, match=r"all checkpoints in .* refusing to start from scratch"):
            checkpoints(saved).load_latest(new_state())
    assert saved.checkpoint_steps() == [10, 20]
    assert [event["step"] for event in events(saved, "checkpoint_rejected")] == [20, 10, 20, 10]


@pytest.mark.parametrize(
    "identity, named",
    [
        (Identity(experiment="e2", data="d1"), "belongs to experiment e1, this run is e2"),
        (Identity(experiment="e1", data="d2"), "belongs to data d1, this run is d2"),
    ],
)
def test_checkpoint_of_another_experiment_or_other_data_is_refused(
    saved: RunDir, identity: Identity, named: str
) -> None:
    with pytest.raises(CheckpointError, match="refusing"):
        checkpoints(saved, identity=identity).load_latest(new_state())
    assert {event["reason"].endswith(named) for event in events(saved, "checkpoint_rejected")} == {True}


def test_other_data_under_the_same_step_do_not_keep_a_save_away(saved: RunDir) -> None:
    """Else the weights of the other data would stand under this run's name."""
    mine = Identity(experiment="e1", data="d2")
    checkpoints(saved, identity=mine).save(state_at(20))
    verify(saved.checkpoint(20), mine)


def test_damaged_checkpoints_do_not_push_out_the_good_ones(run: RunDir) -> None:
    """Two of three were damaged, all newer than what the run goes on from."""
    run.path.mkdir()
    save(run, 10, 30, 40, best=10)
    truncate("model.safetensors")(run.checkpoint(30))
    delete("progress.json")(run.checkpoint(40))
    assert loaded(run).progress.step == 10
    save(run, 15)
    assert loaded(run).progress.step == 15
    save(run, 30, 40, 50)
    assert run.checkpoint_steps() == [40, 50]
    for step in run.checkpoint_steps():
        verify(run.checkpoint(step), IDENTITY)


@pytest.mark.parametrize(
    "keep, best, left", [(2, None, [5, 6]), (3, None, [4, 5, 6]), (2, 2, [2, 5, 6]), (2, 6, [5, 6])]
)
def test_newest_and_the_best_are_kept(run: RunDir, keep: int, best: int | None, left: list[int]) -> None:
    run.path.mkdir()
    for step in range(1, 7):
        state = state_at(step)
        state.progress.best_step = best if best is not None and best <= step else None
        checkpoints(run, keep=keep).save(state)
    assert run.checkpoint_steps() == left
    assert run.last.resolve() == run.checkpoint(6)
    assert not [entry for entry in run.checkpoints.iterdir() if entry.name.startswith(".")]


def test_saving_a_step_twice_leaves_the_first(saved: RunDir) -> None:
    before = (saved.checkpoint(20) / "model.safetensors").stat().st_ino
    save(saved, 20, best=10)
    assert (saved.checkpoint(20) / "model.safetensors").stat().st_ino == before


def test_only_rank_0_writes(run: RunDir) -> None:
    world = World(rank=1, size=2, local_rank=1, local_size=2)
    checkpoints(run, Group(world, torch.device("cpu"))).save(state_at(3))
    assert not run.path.exists()


def load_rank(world: World, path: Path, identity: Identity) -> tuple[int, float]:
    run = RunDir(path)
    with distributed.join(run, world, Train(device="cpu")) as group:
        state = new_state()
        checkpoints(run, group, identity).load_latest(state)
        return state.progress.step, state.model.get_parameter("0.weight").sum().item()


def test_rank_0_decides_for_all_what_is_loaded(saved: RunDir) -> None:
    truncate("training.safetensors")(saved.checkpoint(20))
    answers = in_ranks(3, load_rank, saved.path, IDENTITY)
    assert answers == [answers[0]] * 3
    assert answers[0][0] == 10
    assert len(events(saved, "checkpoint_rejected")) == 1


def test_all_ranks_refuse_together(saved: RunDir) -> None:
    ended = run_ranks(2, load_rank, saved.path, Identity(experiment="e2", data="d1"))
    assert [end.error.split(":")[0] for end in ended] == ["CheckpointError"] * 2


def save_without_room(world: World, path: Path) -> None:
    """Save where there is room for a manifest and no more; a process of its own, for pytest writes too."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
    checkpoints(RunDir(path)).save(state_at(3))


def test_save_without_room_is_an_error_that_names_the_place(run: RunDir) -> None:
    run.path.mkdir()
    (ended,) = run_ranks(1, save_without_room, run.path)
    assert re.match(r"CheckpointError: cannot write .*step_00000003: .*File too large", ended.error)
    assert run.checkpoint_steps() == []


def test_save_where_no_folder_can_be_names_the_place(run: RunDir) -> None:
    run.path.mkdir()
    run.checkpoints.write_text("a file")
    with pytest.raises(CheckpointError, match=r"cannot write .*step_00000003"):
        checkpoints(run).save(state_at(3))


def test_weights_alone_can_be_loaded(saved: RunDir) -> None:
    model = new_state().model
    load_weights(saved.checkpoint(10), model)
    state = new_state()
    load(saved.checkpoint(10), state)
    assert all(
        torch.equal(value, state.model.state_dict()[name]) for name, value in model.state_dict().items()
    )


#: What Python reports before it happens.
_TOUCHING = (
    "open",
    "os.mkdir",
    "os.rename",
    "os.symlink",
    "os.remove",
    "os.rmdir",
    "os.link",
    "shutil.rmtree",
)


def _die_at(count: int) -> None:
    """Kill this process with -9 when it touches the file system for the count-th time."""
    left = count

    def hook(event: str, arguments: Any) -> None:
        nonlocal left
        if event in _TOUCHING or event == "os.fsync":
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    fsync = os.fsync

    def flush(descriptor: int) -> None:
        hook("os.fsync", ())
        fsync(descriptor)

    os.fsync = flush  # type: ignore[assignment]
    sys.addaudithook(hook)


def kill_saves(world: World, pristine: Path, folder: Path) -> list[tuple[int, int, bool]]:
    """Kill a save at its 1st, 2nd, … touch of the disk: what is loaded then, and how it goes on."""
    found: list[tuple[int, int, bool]] = []
    # Made here: a process forked after a backward pass may hang in one of its own.
    saving, later = state_at(30), state_at(40)
    expected = {20: expected_facts(20), 30: facts(saving)}
    for count in range(1, 500):
        run = RunDir(folder / str(count))
        shutil.copytree(pristine, run.path, symlinks=True)
        child = os.fork()
        if child == 0:
            _die_at(count)
            checkpoints(run).save(saving)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            return found
        state = loaded(run)
        step = state.progress.step
        # The next save is none the worse for what the killed one left.
        checkpoints(run).save(later)
        hidden = [entry for entry in run.checkpoints.iterdir() if entry.name.startswith(".")]
        is_well = facts(state) == expected[step] and loaded(run).progress.step == 40 and not hidden
        found.append((count, step, is_well))
        shutil.rmtree(run.path)
    raise AssertionError("the save never ended")


def test_save_killed_anywhere_leaves_the_old_or_the_new(pristine: RunDir, tmp_path: Path) -> None:
    (found,) = in_ranks(1, kill_saves, pristine.path, tmp_path)
    steps = [step for _, step, _ in found]
    assert [count for count, _, is_well in found if not is_well] == []
    # First always the one of step 20, later always the new one.
    assert steps == sorted(steps)
    assert set(steps) == {20, 30}
    assert steps.count(20) > 15


def test_chance_of_seeds_is_not_touched_by_saving(run: RunDir) -> None:
    """A save draws no random number, so that when it happens changes nothing."""
    run.path.mkdir()
    state = state_at(3)
    before = torch.get_rng_state(), random.getstate()
    checkpoints(run).save(state)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]
