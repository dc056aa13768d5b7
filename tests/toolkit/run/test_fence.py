"""Two attempts never write at the same time: the second is refused or replaces the first for good."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from filelock import FileLock

from tests.support.patience import PATIENCE_S, until
from tests.toolkit.support.ranks import await_ranks, run_ranks, start_ranks
from tests.toolkit.support.tiny import assert_equal_runs, tiny
from tests.toolkit.support.tiny_training import Attempt, Lab
from toolkit.data.prepared.manifest import META
from toolkit.data.prepared.results import holds_results
from toolkit.errors import RunBusy
from toolkit.exit_codes import ExitCode
from toolkit.files import read_json, read_json_lines, write_json
from toolkit.reliability import fault_injection
from toolkit.reliability.stop import StopFlag
from toolkit.run.failure.records import failure_record, write_first
from toolkit.run.fence import Fenced, check, hold_run, is_fenced, keep_fenced, raise_fence
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World
from toolkit.training import worker
from toolkit.training.attempt import finalize


@pytest.fixture(autouse=True)
def short_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolkit.run.fence._MOMENT_S", 0.1)


def start(nonce: str, job: str = "", restart: int = 0) -> World:
    return World(rank=0, size=1, local_rank=0, local_size=1, nonce=nonce, job=job, restart=restart)


def test_only_a_replaced_attempt_is_fenced(run: RunDir) -> None:
    assert not is_fenced(run, "first")
    raise_fence(run, "first")
    assert not is_fenced(run, "first")
    raise_fence(run, "second", job="12")
    assert is_fenced(run, "first")
    assert not is_fenced(run, "second")
    # An attempt that has not come so far yet.
    assert not is_fenced(run, "third")
    check(run, "second")
    with pytest.raises(Fenced, match="has been restarted: this attempt, first"):
        check(run, "first")
    assert issubclass(Fenced, RunBusy)
    assert read_json(run.fence)["job"] == "12"


@pytest.mark.parametrize("has_finished", [True, False])
def test_attempts_of_a_folder_that_was_set_aside_stay_fenced(run: RunDir, has_finished: bool) -> None:
    old, new = RunDir(run.path / "old"), RunDir(run.path / "new")
    for each in (old, new):
        each.path.mkdir()
    keep_fenced(new, old)
    assert not new.fence.exists()
    raise_fence(old, "first")
    raise_fence(old, "second")
    if has_finished:
        old.result.touch()
    keep_fenced(new, old)
    for _ in range(2):
        assert is_fenced(new, "first")
        assert is_fenced(new, "second") != has_finished
        assert not is_fenced(new, "third")
        raise_fence(new, "third")


def test_restarted_job_takes_the_lock_of_a_run_that_was_started_anew(run: RunDir) -> None:
    """Its start before was frozen before it named itself."""
    run.fence.write_text('{"earlier": ["first"]}')
    with FileLock(run.alive), hold_run(run, start("third", job="12", restart=1), 0.1):
        assert read_json(run.fence)["nonce"] == "third"


def test_raising_the_same_fence_again_changes_nothing(run: RunDir) -> None:
    raise_fence(run, "first")
    before = run.fence.stat().st_mtime_ns
    raise_fence(run, "first")
    assert run.fence.stat().st_mtime_ns == before


def test_launcher_that_reuses_a_nonce_is_not_fenced(run: RunDir) -> None:
    for nonce in ("torchrun", "other", "torchrun"):
        raise_fence(run, nonce)
    assert not is_fenced(run, "torchrun")
    assert is_fenced(run, "other")


def test_fence_remembers_the_last_256_attempts(run: RunDir) -> None:
    for number in range(300):
        raise_fence(run, f"start{number}")
    assert is_fenced(run, "start100")
    assert len(read_json(run.fence)["earlier"]) == 256


def test_unreadable_fence_fences_nobody(run: RunDir) -> None:
    run.fence.write_text("{")
    assert not is_fenced(run, "first")
    run.fence.unlink()
    run.fence.mkdir()
    check(run, "first")
    with pytest.raises(IsADirectoryError):
        # An attempt that a later one does not know of could write again.
        raise_fence(run, "second")


def test_fenced_attempt_writes_no_failure(run: RunDir) -> None:
    raise_fence(run, "first")
    raise_fence(run, "second")
    record = failure_record("first", "peer_lost", "late", rank=0, host="w1", phase="communication", step=3)
    assert not write_first(run, record)
    assert not run.failure.exists()
    assert write_first(run, {**record, "nonce": "second"})


# -- the lock


def test_single_attempt_raises_the_fence_and_releases_the_lock(run: RunDir) -> None:
    with hold_run(run, start("first"), 1.0):
        assert not is_fenced(run, "first")
        assert read_json(run.fence)["nonce"] == "first"
    with FileLock(run.alive).acquire(timeout=0):
        pass


def test_ranks_other_than_0_take_no_lock(run: RunDir) -> None:
    world = World(rank=1, size=2, local_rank=1, local_size=2, nonce="first")
    with hold_run(run, world, 1.0):
        assert not run.alive.exists()
        assert not run.fence.exists()


@pytest.mark.parametrize(
    "second",
    [start("second"), start("second", job="13"), start("second", job="13", restart=2)],
    ids=["by hand", "another job", "another job's restart"],
)
def test_second_attempt_is_refused_and_does_not_fence_the_live_one(run: RunDir, second: World) -> None:
    with (
        hold_run(run, start("first", job="12"), 1.0),
        pytest.raises(RunBusy, match="is being trained by another process") as caught,
        hold_run(run, second, 1.0),
    ):
        raise AssertionError("it must not begin")
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)
    assert read_json(run.fence)["nonce"] == "first"


def hold(path: str, nonce: str, job: str, ready: Any) -> None:
    with hold_run(RunDir(Path(path)), start(nonce, job=job), 1.0):
        ready.send(True)
        signal.pause()


@pytest.mark.parametrize("is_frozen", [False, True])
def test_restarted_job_replaces_its_earlier_process(run: RunDir, is_frozen: bool) -> None:
    """The earlier process ignores the fence or is frozen; the job waits only for a bounded time."""
    receiver, sender = get_context("forkserver").Pipe(duplex=False)
    holder = get_context("forkserver").Process(target=hold, args=(str(run.path), "first", "12", sender))
    holder.start()
    assert receiver.recv()
    if is_frozen:
        os.kill(holder.pid, signal.SIGSTOP)
    try:
        with hold_run(run, start("second", job="12", restart=1), 0.2):
            assert is_fenced(run, "first")
            # The lock is held anew, so that a third start is refused.
            with pytest.raises(RunBusy), hold_run(run, start("third"), 0.2):
                pass
    finally:
        holder.kill()
        holder.join()
    assert read_json(run.fence)["nonce"] == "second"


def test_restarted_job_waits_for_its_earlier_process_to_leave(run: RunDir) -> None:
    """Only then the file of the lock stays: it would be put aside if the first were not expected to leave."""

    def take_over() -> int:
        with hold_run(run, start("second", job="12", restart=1), PATIENCE_S):
            return run.alive.stat().st_ino

    with ThreadPoolExecutor(1) as thread:
        with hold_run(run, start("first", job="12"), 1.0):
            before = run.alive.stat().st_ino
            second = thread.submit(take_over)
            until(lambda: is_fenced(run, "first"))
        assert second.result() == before


def test_chained_job_replaces_an_earlier_job_without_heartbeats(run: RunDir) -> None:
    """A chained job starts after the previous one, which may have lost its host while holding the lock."""
    lock = FileLock(run.alive)
    raise_fence(run, "first", job="12")
    run.heartbeat("first", 0).parent.mkdir()
    with lock:
        write_json(run.heartbeat("first", 0), {"time": time.time()})
        with pytest.raises(RunBusy), hold_run(run, start("second", job="13"), 30.0):
            pass
        write_json(run.heartbeat("first", 0), {"time": time.time() - 60})
        with pytest.raises(RunBusy), hold_run(run, start("second"), 0.1):
            pass
        with hold_run(run, start("second", job="13"), 0.1):
            assert is_fenced(run, "first")


def test_live_job_of_a_host_whose_clock_is_behind_is_not_replaced(run: RunDir) -> None:
    raise_fence(run, "first", job="12")
    run.heartbeat("first", 0).parent.mkdir()

    def beat(number: int = 0) -> None:
        write_json(run.heartbeat("first", 0), {"time": time.time() - 90 + number / 1000})

    def second() -> None:
        with hold_run(run, start("second", job="13"), 1.0):
            pass

    beat()
    with FileLock(run.alive), ThreadPoolExecutor(1) as thread:
        refused = thread.submit(second)
        for number in count(1):
            beat(number)
            if wait([refused], timeout=0.05).done:
                break
        with pytest.raises(RunBusy):
            refused.result()
    assert not is_fenced(run, "first")


def test_job_that_has_just_replaced_a_frozen_one_is_not_replaced(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    raise_fence(run, "first", job="12")
    run.heartbeat("first", 0).parent.mkdir()
    write_json(run.heartbeat("first", 0), {"time": time.time() - 60})

    class Waiting(FileLock):
        """While the third job waits, the second one takes over."""

        def acquire(self, *args: Any, **options: Any) -> Any:
            raise_fence(run, "second", job="13")
            return super().acquire(*args, **options)

    with FileLock(run.alive):
        monkeypatch.setattr("filelock.FileLock", Waiting)
        with pytest.raises(RunBusy), hold_run(run, start("third", job="14"), 0.1):
            pass
    assert not is_fenced(run, "second")


# -- real processes


def train_rank(world: World, path: Path, spec: str, job: str, restart: int) -> str:
    """Train as an attempt of a job. Its watchdog does not look at the fence: it may come late."""
    os.environ[fault_injection.VARIABLE] = spec
    world = replace(world, nonce=f"{job}.0.{restart}", job=job, restart=restart)
    with (
        patch("toolkit.training.attempt.finalize._report"),
        patch("toolkit.reliability.watchdog.leave_if_fenced"),
    ):
        return worker.run_attempt(RunDir(path), world, StopFlag()).value


def test_frozen_attempt_that_was_replaced_exits_before_it_writes(lab: Lab) -> None:
    """SIGSTOP in the middle of a step, the job again, SIGCONT while that one trains."""
    experiment = tiny(lab.folder, "train.hang_timeout_s=10", "checkpoint.every_steps=2")
    run = lab.start(experiment)
    frozen = start_ranks(1, train_rank, run.path, "stop at=forward step=5", "12", 0)
    pid = frozen[0].process.pid
    until(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T")
    # Another process tries by hand meanwhile.
    (refused,) = run_ranks(1, train_rank, run.path, "", "", 0)
    assert refused.error.startswith("RunBusy")
    again = start_ranks(1, train_rank, run.path, "slow 0.2 at=forward", "12", 1)
    starts = until(lambda: [line for line in read_json_lines(run.attempts) if line["restart"] == 1])
    os.kill(pid, signal.SIGCONT)
    (woken,) = await_ranks(frozen)
    assert woken.exit_status == ExitCode.FENCED
    (end,) = await_ranks(again)
    assert (end.value, end.error) == ("finished", "")
    assert len(starts) == 1
    assert [line["why"] for line in read_json_lines(run.attempts)] == ["requeued", "finished"]
    assert_equal_runs(run, lab.train(experiment, Attempt()))
    assert not run.failure.exists()


def lose_the_peers_of_a_replaced_start(world: World, path: Path) -> str:
    """Train, and find the peers gone because a later attempt has replaced this one."""

    def lose(*_: object) -> None:
        raise_fence(RunDir(path), "the later one")
        raise RuntimeError("Connection closed by peer")

    # Its watchdog does not look during the test, so that the lost peers are noticed first.
    with (
        patch("toolkit.training.attempt.stages.train", lose),
        patch("toolkit.reliability.watchdog.period_s", lambda _: 900.0),
    ):
        return worker.run_attempt(RunDir(path), world, StopFlag()).value


def test_replaced_attempt_that_loses_its_peers_writes_no_failure(lab: Lab) -> None:
    run = lab.start(tiny(lab.folder))
    (end,) = run_ranks(1, lose_the_peers_of_a_replaced_start, run.path)
    assert end.exit_status == ExitCode.FENCED
    assert not run.failure.exists()


def be_replaced_at_the_end(world: World, path: Path, name: str) -> str:
    """Train, and be replaced while a function of finalize is called."""

    def replaced(original: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        raise_fence(RunDir(path), "the later one")
        return original(*arguments, **options)

    with (
        patch("toolkit.training.attempt.finalize._report"),
        patch.object(finalize, name, partial(replaced, getattr(finalize, name))),
        patch("toolkit.run.attempts.attempt._CHECK_EVERY_S", 0.0),
        patch("toolkit.reliability.watchdog.period_s", lambda _: 900.0),
    ):
        return worker.run_attempt(RunDir(path), world, StopFlag()).value


@pytest.mark.parametrize(
    "name, has_scored, is_recorded",
    [("score_split", False, False), ("_report", True, False), ("_record_scores", True, True)],
)
def test_attempt_that_is_replaced_at_the_end_of_the_run_writes_nothing_more(
    lab: Lab, tmp_path: Path, name: str, has_scored: bool, is_recorded: bool
) -> None:
    run = lab.start(tiny(tmp_path, "train.epochs=1"))
    (end,) = run_ranks(1, be_replaced_at_the_end, run.path, name)
    assert end.exit_status == ExitCode.FENCED
    assert run.artifact("validation_predictions.tsv").exists() is has_scored
    (manifest,) = (tmp_path / "prepared").rglob(META)
    assert holds_results(manifest.parent) is is_recorded
    assert not run.result.exists()
    assert not run.failure.exists()
