"""Training waits only for the copy: one write at a time runs beside it and sees none of its changes."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.support.patience import PATIENCE_S
from tests.toolkit.support.checkpointing import (
    IDENTITY,
    checkpoints,
    facts,
    loaded,
    new_state,
    save_state,
    state_at,
    write,
)
from tests.toolkit.support.tiny import events
from toolkit.checkpoint.state import TrainState
from toolkit.checkpoint.store import Checkpoints
from toolkit.checkpoint.verification import verify
from toolkit.checkpoint.writing.throttle import Throttle
from toolkit.distributed.process_group import Group
from toolkit.files import append_json_line
from toolkit.run import fence
from toolkit.run.events import note_event
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World


class Gate:
    """Stops the writer at a point until the test lets it pass; stands in for a slow disk."""

    def __init__(self, point: str = "save:write") -> None:
        self._point = point
        self._reached = threading.Event()
        self._open = threading.Event()

    def at(self, point: str, step: int) -> None:
        if point == self._point:
            self._reached.set()
            assert self._open.wait(PATIENCE_S)

    def wait_until_reached(self) -> None:
        assert self._reached.wait(PATIENCE_S)

    def let_pass(self) -> None:
        self._open.set()


def go_on_training(state: TrainState) -> None:
    """Change everything in place."""
    state.optimizer.zero_grad()
    state.model(torch.randn(5, 4)).square().sum().backward()
    state.optimizer.step()
    state.model.get_buffer("seen").add_(1)
    state.progress.step += 1
    state.progress.sums["loss"] = -1.0


def test_changes_made_during_a_write_are_not_saved(run: RunDir) -> None:
    gate, state = Gate(), state_at(5)
    saving = checkpoints(run, faults=gate)
    before = facts(state)
    saving.save(state)
    gate.wait_until_reached()
    for _ in range(3):
        go_on_training(state)
    gate.let_pass()
    saving.wait()
    assert facts(loaded(run)) == before != facts(state)


def test_optional_saves_are_skipped_during_a_write_and_reported_once(run: RunDir) -> None:
    gate = Gate()
    saving = checkpoints(run, faults=gate)
    saving.save(state_at(5))
    gate.wait_until_reached()
    for step in (6, 7, 8):
        saving.save(state_at(step), needed=False)
    gate.let_pass()
    saving.wait()
    write(saving, state_at(9), needed=False)
    assert run.checkpoint_steps() == [5, 9]
    assert [event["step"] for event in events(run, "save_skipped")] == [6]


def test_required_save_waits_for_the_write_before_it(run: RunDir) -> None:
    gate = Gate()
    saving = checkpoints(run, faults=gate)
    first, second = state_at(5), state_at(6)
    second.progress.best_step = 5
    saving.save(first)
    gate.wait_until_reached()
    asking = threading.Thread(target=saving.save, args=(second,))
    asking.start()
    # Never two at once: the second is not even staged, or the first would hold its bytes.
    gate.let_pass()
    asking.join(PATIENCE_S)
    saving.wait()
    assert run.checkpoint_steps() == [5, 6]
    assert facts(loaded(run)) == facts(second)
    verify(run.checkpoint(5), IDENTITY)
    assert [event["waited_s"] > 0 for event in events(run, "save")][1]


def test_lines_of_the_steps_are_on_the_disk_before_their_checkpoint(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a lost host leaves holes in them. Training does not wait for the disk."""
    synced, fsync = [], os.fsync

    def noted(descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        synced.append((Path(path), threading.current_thread().name, run.checkpoint_steps()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    for file in (run.metrics, run.step_records):
        append_json_line(file, {"step": 5})
    save_state(run, state_at(5))
    for file in (run.metrics, run.step_records):
        assert (file, "checkpoint", []) in synced


def test_save_event_records_its_cost(run: RunDir) -> None:
    save_state(run, state_at(5))
    (event,) = events(run, "save")
    assert event["step"] == 5
    assert event["seconds"] >= event["stall_s"] + event["waited_s"]
    assert event["seconds"] >= event["write_s"] > 0
    assert event["bytes"] == sum(
        file.stat().st_size for file in run.checkpoint(5).iterdir() if file.name != "MANIFEST.json"
    )


def test_save_seconds_are_those_of_the_slowest_save_and_survive_a_restart(run: RunDir) -> None:
    saving = checkpoints(run)
    assert (saving.seconds, saving.is_measured) == (0.0, False)
    for step in (1, 2, 3):
        write(saving, state_at(step))
    noted = [event["seconds"] - event["paused_s"] for event in events(run, "save")]
    assert saving.seconds == pytest.approx(max(noted), abs=1e-3)
    following = checkpoints(run)
    following.load_latest(new_state())
    assert following.seconds == max(noted)


def test_save_that_was_not_measured_is_estimated_from_the_size_of_the_state(run: RunDir) -> None:
    """A run must begin its first save early enough before its time limit."""
    saving = checkpoints(run)
    saving.reserve(state_at(1))
    assert saving.seconds == pytest.approx(saving._staging.size / (50 << 20))
    assert saving.seconds > 0
    assert not saving.is_measured


def test_writer_pauses_during_training_but_not_while_training_waits(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With endless pauses, only a save that training waits for completes."""
    monkeypatch.setattr("toolkit.checkpoint.writing.throttle._PAUSE", 1e9)
    paused, pause = threading.Event(), Throttle.pause

    def noted_pause(pace: Throttle) -> None:
        paused.set()
        pause(pace)

    monkeypatch.setattr(Throttle, "pause", noted_pause)
    saving = checkpoints(run)
    saving.save(state_at(5), needed=False)
    paused.wait()
    # What is written down in milliseconds has to be some.
    threading.Event().wait(0.01)
    saving.save(state_at(6), needed=False)
    assert events(run, "save_skipped")
    assert run.checkpoint_steps() == []
    write(saving, state_at(7))
    assert run.checkpoint_steps() == [5, 7]
    first, last = events(run, "save")
    assert first["paused_s"] > 0
    assert saving.seconds < max(first["seconds"], last["seconds"])


def test_waiting_for_a_write_sends_heartbeats(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the watchdog would end an attempt that waits for a slow disk."""
    monkeypatch.setattr("toolkit.checkpoint.store._LOOK_S", 0.001)
    gate = Gate("save:before_manifest")
    saving = checkpoints(run, faults=gate)
    # The write goes on only after a sign of life.
    saving.heartbeat = gate.let_pass
    write(saving, state_at(5))
    assert run.checkpoint_steps() == [5]


def timed(run: RunDir, every_minutes: float | None, rank: int = 0) -> Checkpoints:
    group = Group(World(rank=rank, size=2, local_rank=rank, local_size=2), torch.device("cpu"))
    return Checkpoints(
        run, group, IDENTITY, 2, lambda event, **facts: note_event(run, event, **facts), every_minutes
    )


def test_save_is_due_by_the_clock_of_rank_0_and_not_during_a_save(run: RunDir) -> None:
    saving, gate = timed(run, 1e-9), Gate()
    saving.faults = gate  # type: ignore[assignment]
    assert saving.is_due()
    saving.save(state_at(5), needed=False)
    gate.wait_until_reached()
    assert not saving.is_due()
    gate.let_pass()
    saving.wait()
    assert saving.is_due()
    assert not timed(run, 1e-9, rank=1).is_due()
    assert not timed(run, 60.0).is_due()


def test_save_interval_is_computed_after_the_first_save(run: RunDir) -> None:
    append_json_line(
        run.attempts, {"attempt": 1, "nonce": "earlier", "time_start": 0, "time_end": 60, "why": "killed"}
    )
    append_json_line(run.attempts, {"attempt": 2, "nonce": "", "time_start": 90})
    saving = timed(run, None)
    write(saving, state_at(5))
    (event,) = events(run, "save_interval")
    assert event["mtbf_s"] == pytest.approx(12 * 3600, rel=0.01)


def test_close_completes_the_write_in_progress(run: RunDir) -> None:
    saving = checkpoints(run)
    saving.save(state_at(5))
    saving.close()
    verify(run.checkpoint(5), IDENTITY)
    checkpoints(run).close()


class Watch:
    """Counts the checkpoints, which must all verify, at every point of every save."""

    def __init__(self, run: RunDir) -> None:
        self._run = run
        self.counts: list[tuple[int, int]] = []

    def at(self, point: str, step: int) -> None:
        steps = self._run.checkpoint_steps()
        for seen in steps:
            verify(self._run.checkpoint(seen), IDENTITY)
        self.counts.append((step, len(steps)))


def test_saves_never_leave_fewer_checkpoints_than_are_to_be_kept(run: RunDir) -> None:
    watch = Watch(run)
    saving = checkpoints(run, faults=watch)
    for step in range(1, 11):
        state = state_at(step)
        state.progress.best_step = min(step, 3)
        write(saving, state)
    assert not events(run, "save_failed")
    assert not events(run, "tidy_failed")
    assert run.checkpoint_steps() == [3, 9, 10]
    assert {step for step, _ in watch.counts} == set(range(1, 11))
    assert [(step, count) for step, count in watch.counts if count < min(step - 1, 2)] == []


def of_start(run: RunDir, nonce: str, faults: Any = None) -> Checkpoints:
    """What one attempt of the run saves with."""
    world = World(rank=0, size=1, local_rank=0, local_size=1, nonce=nonce)
    return checkpoints(run, Group(world, torch.device("cpu")), faults=faults)


def test_replaced_attempt_saves_nothing_and_raises(run: RunDir) -> None:
    fence.raise_fence(run, "old")
    saving = of_start(run, "old")
    fence.raise_fence(run, "new")
    saving.save(state_at(5))
    with pytest.raises(fence.Fenced, match="restarted"):
        saving.wait()
    with pytest.raises(fence.Fenced):
        saving.save(state_at(6))
    assert list(run.checkpoints.iterdir()) == []
    assert not run.events.exists()


def test_attempt_that_is_replaced_during_a_save_deletes_no_newer_checkpoint(run: RunDir) -> None:
    gate = Gate("save:after_rename")
    old, new = of_start(run, "old", gate), of_start(run, "new")
    fence.raise_fence(run, "old")
    old.save(state_at(5))
    gate.wait_until_reached()
    fence.raise_fence(run, "new")
    for step in (7, 8, 9):
        state = state_at(step)
        state.progress.best_step = 7
        write(new, state)
    gate.let_pass()
    with pytest.raises(fence.Fenced, match="restarted"):
        old.wait()
    assert run.checkpoint_steps() == [7, 8, 9]
    assert (run.best.resolve().name, run.last.resolve().name) == ("step_00000007", "step_00000009")
    assert [event["step"] for event in events(run, "save")] == [7, 8, 9]
