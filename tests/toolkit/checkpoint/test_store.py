"""A checkpoint is complete or absent; what is loaded is what was saved, to the bit."""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
from pathlib import Path

import pytest
import torch

from tests.toolkit.support.checkpointing import (
    FILES,
    IDENTITY,
    checkpoints,
    facts,
    loaded,
    new_state,
    save,
    save_state,
    state_at,
    truncate,
    write,
)
from tests.toolkit.support.ranks import in_ranks, joined, run_ranks, worlds
from tests.toolkit.support.tiny import events
from toolkit.checkpoint.verification import Identity
from toolkit.distributed.process_group import Group
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World


def test_load_restores_weights_optimizer_buffers_scaler_and_progress(run: RunDir) -> None:
    state = state_at(7)
    save_state(run, state)
    assert facts(loaded(run)) == facts(state)
    assert loaded(run).progress == state.progress


def test_load_without_checkpoints_leaves_the_state_unchanged(run: RunDir) -> None:
    state = new_state()
    before = facts(state)
    assert not checkpoints(run).load_latest(state)
    assert facts(state) == before


def test_newest_is_loaded_and_links_point_at_newest_and_best(saved: RunDir) -> None:
    assert loaded(saved).progress.step == 20
    assert saved.last.resolve() == saved.checkpoint(20)
    assert saved.best.resolve() == saved.checkpoint(10)
    assert not os.path.isabs(os.readlink(saved.last))


def test_load_ignores_dangling_links(saved: RunDir) -> None:
    for link in (saved.last, saved.best):
        link.unlink()
        link.symlink_to("nowhere")
    assert loaded(saved).progress.step == 20


def test_copied_run_whose_links_are_folders_is_tidied_like_any_other(saved: RunDir) -> None:
    """`scp -r` and `cp -rL` follow links."""
    for link in (saved.last, saved.best):
        checkpoint = link.resolve()
        link.unlink()
        shutil.copytree(checkpoint, link)
    state = state_at(30)
    state.progress.best_step = 30
    save_state(saved, state, keep=1)
    assert saved.last.resolve() == saved.best.resolve() == saved.checkpoint(30)
    assert saved.checkpoint_steps() == [30]


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


@pytest.mark.parametrize("finite, left", [((2,), [1, 2]), ((), [1, 2, 3, 4]), ((1, 2, 3, 4), [1, 2, 3, 4])])
def test_checkpoints_with_nan_weights_are_set_aside_if_one_before_them_is_good(
    run: RunDir, finite: tuple[int, ...], left: list[int]
) -> None:
    """A row of an embedding may be nan long before a sample uses it. A run never starts silently anew."""
    for step in range(1, 5):
        state = state_at(step)
        if step not in finite:
            next(state.model.parameters()).data.view(-1)[0] = torch.nan
        save_state(run, state, keep=9)
    if finite == (2,):
        truncate(run.checkpoint(3) / "model.safetensors")
    names = [name for name, _ in new_state().model.named_parameters()]
    checkpoints(run).set_spoilt_aside(names)
    assert run.checkpoint_steps() == left


@pytest.mark.parametrize(
    "keep, best, compared, left",
    [
        (2, (), None, [5, 6]),
        (3, (), None, [4, 5, 6]),
        (2, (2,), None, [2, 5, 6]),
        (2, (6,), None, [5, 6]),
        (2, (), 3, [3, 5, 6]),
        (2, (2, 6), 4, [2, 4, 5, 6]),
        (2, (), 0, [5, 6]),
    ],
)
def test_newest_checkpoints_the_best_one_and_the_last_compared_one_are_kept(
    run: RunDir, keep: int, best: tuple[int, ...], compared: int | None, left: list[int]
) -> None:
    """That one also with its own best one."""
    saving = checkpoints(run, keep=keep)
    for step in range(1, 7):
        state = state_at(step)
        state.progress.best_step = max((each for each in best if each <= step), default=None)
        saving.compared = None if compared is None else min(step, compared)
        write(saving, state)
    assert run.checkpoint_steps() == left
    assert run.last.resolve() == run.checkpoint(6)
    assert not [entry for entry in run.checkpoints.iterdir() if entry.name.startswith(".")]


def test_saving_a_step_twice_keeps_the_first_checkpoint(saved: RunDir) -> None:
    before = (saved.checkpoint(20) / "model.safetensors").stat().st_ino
    save(saved, 20, best=10)
    assert (saved.checkpoint(20) / "model.safetensors").stat().st_ino == before


def test_only_rank_0_writes(run: RunDir) -> None:
    checkpoints(run, Group(worlds(2)[1], torch.device("cpu"))).save(state_at(3))
    assert not run.checkpoints.exists()


def load_rank(world: World, path: Path, identity: Identity) -> tuple[int, float]:
    with joined(world, path) as group:
        state = new_state()
        checkpoints(RunDir(path), group, identity).load_latest(state)
        return state.progress.step, state.model.get_parameter("0.weight").sum().item()


def test_rank_0_selects_the_checkpoint_for_all_ranks(saved: RunDir) -> None:
    truncate(saved.checkpoint(20) / "training.safetensors")
    answers = in_ranks(3, load_rank, saved.path, IDENTITY)
    assert answers == [answers[0]] * 3
    assert answers[0][0] == 10
    assert len(events(saved, "checkpoint_rejected")) == 1


def test_all_ranks_refuse_together(saved: RunDir) -> None:
    ended = run_ranks(2, load_rank, saved.path, Identity(experiment="e2", data="d1"))
    assert [end.error.split(":")[0] for end in ended] == ["CheckpointError"] * 2


def test_save_does_not_change_the_random_state(run: RunDir) -> None:
    """A save draws no random number, so that when it happens changes nothing."""
    state = state_at(3)
    before = torch.get_rng_state(), random.getstate()
    save_state(run, state)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]
