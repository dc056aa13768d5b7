"""A rank that blocks the others is found, named and ended; a rank that is only slow is not."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stk_toy.texts.task import TextsTask

from tests.support.patience import PATIENCE_S
from tests.toolkit.support.ranks import await_ranks, run_ranks, start_ranks
from tests.toolkit.support.tiny import assert_equal_runs, events, tiny
from tests.toolkit.support.tiny_training import Attempt, Lab
from toolkit.config import Experiment
from toolkit.errors import DataError
from toolkit.exit_codes import ExitCode
from toolkit.files import read_json, read_json_lines, write_json
from toolkit.reliability import fault_injection
from toolkit.reliability.heartbeat import Heartbeat, culprit_of, format_hang
from toolkit.reliability.restart_policy import after_failure
from toolkit.reliability.stop import StopFlag
from toolkit.reliability.watchdog import Pulse, Watchdog, period_s
from toolkit.run.attempts.crash_record import record_crash
from toolkit.run.run_dir import RunDir
from toolkit.system.host import is_here
from toolkit.system.world import World
from toolkit.training import worker

#: Much longer than a step, on a busy machine too.
HANG_S = 2.0


def train_rank(world: World, path: Path, spec: str) -> str:
    """Train as one rank, with faults."""
    os.environ[fault_injection.VARIABLE] = spec
    with patch("toolkit.training.attempt.finalize._report"):
        return worker.run_attempt(RunDir(path), world, StopFlag()).value


@pytest.fixture(scope="module")
def experiment(lab: Lab) -> Experiment:
    return tiny(lab.folder, f"train.hang_timeout_s={HANG_S}", "checkpoint.every_steps=2")


# -- finding the culprit


def rank(number: int, phase: str, *, still_s: float = 5.0, **facts: Any) -> Heartbeat:
    return Heartbeat(
        rank=number, host=f"w{number}", phase=phase, step=4, still_s=still_s, limit_s=1.0, **facts
    )


@pytest.mark.parametrize("phase", ["data", "forward", "backward", "save", "evaluation", "optimizer"])
@pytest.mark.parametrize("others", ["communication", "backward"])
def test_rank_that_is_not_waiting_is_the_culprit(others: str, phase: str) -> None:
    culprit = culprit_of([rank(0, others), rank(1, others), rank(2, phase), rank(3, others)])
    assert culprit.rank == (0 if others == phase else 2)


def test_rank_that_waits_in_a_collective_of_its_phase_is_not_the_culprit() -> None:
    """At the end of an evaluation all ranks sum up their scores."""
    ranks = [rank(0, "evaluation", waits=True), rank(1, "evaluation"), rank(2, "evaluation", waits=True)]
    assert culprit_of(ranks).rank == 1


def test_rank_without_heartbeats_is_the_culprit_in_any_phase() -> None:
    ranks = [rank(0, "data"), replace(rank(1, "communication", still_s=0.0), is_silent=True)]
    culprit = culprit_of(ranks)
    assert culprit.rank == 1
    assert "no sign of life" in format_hang(culprit, 2)


def test_there_is_no_culprit_while_a_rank_is_within_its_limit() -> None:
    waiting = [rank(0, "communication"), rank(1, "communication")]
    assert culprit_of([*waiting, rank(2, "evaluation", still_s=0.1)]) is None
    assert culprit_of([*waiting, replace(rank(2, "save"), limit_s=60.0)]) is None
    assert culprit_of([*waiting, replace(rank(2, "data preparation"), limit_s=None)]) is None


def test_network_is_suspected_if_all_ranks_wait_for_each_other() -> None:
    ranks = [rank(0, "communication"), replace(rank(1, "communication"), step=3)]
    culprit = culprit_of(ranks)
    assert culprit.rank == 1
    assert "wait for each other" in format_hang(culprit, 2)
    assert "the network" in format_hang(culprit, 2)


PHASES = st.sampled_from(["data", "forward", "backward", "communication", "save", "evaluation"])
HEARTBEATS = st.builds(
    Heartbeat,
    rank=st.integers(0, 7),
    host=st.just("w"),
    phase=PHASES,
    step=st.integers(0, 3),
    still_s=st.floats(0, 4),
    limit_s=st.one_of(st.none(), st.floats(1, 3)),
    waits=st.booleans(),
    is_silent=st.booleans(),
)


@given(st.lists(HEARTBEATS, min_size=1, max_size=8, unique_by=lambda each: each.rank))
def test_culprit_is_silent_or_stands_still_and_waits_only_if_all_wait(ranks: list[Heartbeat]) -> None:
    """The culprit is never a rank at work, nor a waiting rank if another rank does not wait."""
    ranks = sorted(ranks, key=lambda each: each.rank)
    culprit = culprit_of(ranks)
    if culprit is None:
        assert not any(each.is_silent for each in ranks)
        assert not all(each.stands_still for each in ranks)
        return
    assert culprit.is_silent or culprit.stands_still
    if not culprit.is_silent and culprit.waits:
        assert all(each.waits or each.phase == "communication" for each in ranks)


@given(st.floats(0.01, 1e5))
def test_heartbeats_are_frequent_enough_to_detect_a_silent_rank(hang_timeout_s: float) -> None:
    assert 0.1 <= period_s(hang_timeout_s) <= 15
    if hang_timeout_s >= 2:
        assert 3 * period_s(hang_timeout_s) < 0.45 * hang_timeout_s


# -- real ranks


@pytest.mark.parametrize(
    "spec, phase",
    [
        ("hang at=data step=5 rank=1", "data"),
        ("hang at=backward step=5 rank=1", "backward"),
        ("hang at=evaluation step=8 rank=0", "evaluation"),
        # The other one waits for what it gathers, in the same phase.
        ("hang at=evaluation step=8 rank=1", "evaluation"),
        ("hang at=save:write step=6 rank=0; hang at=save step=8 rank=0", "save"),
    ],
)
def test_rank_that_hangs_is_named_by_phase_with_its_stack(
    lab: Lab, experiment: Experiment, spec: str, phase: str
) -> None:
    run = lab.start(experiment)
    ended = run_ranks(2, train_rank, run.path, spec)
    assert ExitCode.HUNG in [end.exit_status for end in ended]
    failure = read_json(run.failure)
    culprit = int(spec[-1])
    assert (failure["class"], failure["rank"], failure["phase"]) == ("hang", culprit, phase)
    assert f"rank {culprit} on" in failure["message"]
    assert "fault_injection.py" in failure["message"]
    assert "_strike" in failure["traceback"]
    for path in run.logs.glob("*.log"):
        assert "stacks of all threads" in path.read_text()


def test_rank_that_hangs_in_its_backward_pass_is_named_while_ddp_waits_for_it(
    lab: Lab, experiment: Experiment
) -> None:
    """The other rank waits inside its own backward pass, where DDP sums what all ranks use."""
    fast = replace(experiment, train=replace(experiment.train, reduction="fast"))
    run = lab.start(fast)
    run_ranks(2, train_rank, run.path, "hang at=backward step=5 rank=1")
    failure = read_json(run.failure)
    assert (failure["class"], failure["rank"], failure["phase"]) == ("hang", 1, "backward")


def test_run_resumed_after_a_hang_equals_an_undisturbed_one(lab: Lab, experiment: Experiment) -> None:
    run = lab.start(experiment)
    run_ranks(2, train_rank, run.path, "hang at=data step=11 rank=1")
    record_crash(run, ExitCode.HUNG)
    assert after_failure(run, experiment).action == "retry"
    assert [end.value for end in run_ranks(2, train_rank, run.path, "")] == ["finished"] * 2
    assert_equal_runs(run, lab.train(experiment, Attempt()))
    first, second = read_json_lines(run.attempts)
    assert (first["why"], first["rank"], second["why"]) == ("hang", 1, "finished")


def test_hanging_single_process_names_itself(lab: Lab, experiment: Experiment) -> None:
    run = lab.start(experiment)
    (ended,) = run_ranks(1, train_rank, run.path, "hang at=forward step=3")
    assert ended.exit_status == ExitCode.HUNG
    failure = read_json(run.failure)
    assert (failure["class"], failure["phase"], failure["step"]) == ("hang", "forward", 3)
    assert "the others" not in failure["message"]


def test_stopped_process_is_named_by_its_silence(lab: Lab, experiment: Experiment) -> None:
    """SIGSTOP: all its threads stand still, its connections stay open."""
    run = lab.start(experiment)
    started = start_ranks(3, train_rank, run.path, "stop at=backward step=5 rank=1")
    for peer in (started[0], started[2]):
        peer.process.join(PATIENCE_S)
    started[1].process.kill()
    ended = await_ranks(started)
    assert {ended[0].exit_status, ended[2].exit_status} == {ExitCode.HUNG}
    failure = read_json(run.failure)
    assert (failure["class"], failure["rank"], failure["step"]) == ("hang", 1, 5)
    assert "no sign of life" in failure["message"]
    assert failure["blamed"] == failure["host"]
    assert [event["rank"] for event in events(run, "failure")] == [1] * len(events(run, "failure"))


def slow_rank(world: World, path: Path, slow_s: float) -> str:
    """Rank 0 takes longer for a batch of the evaluation than a hang may last, in small steps."""
    collate = TextsTask.collate
    nap = threading.Event()

    def slowly(task: TextsTask, split: str, *arguments: Any) -> Any:
        if split == "validation" and world.is_main:
            nap.wait(slow_s)
        return collate(task, split, *arguments)

    with patch.object(TextsTask, "collate", slowly):
        return train_rank(world, path, "")


@pytest.mark.slow
def test_evaluation_longer_than_the_hang_timeout_is_not_a_hang(lab: Lab) -> None:
    """Each batch is a sign of life: three of them take rank 0 longer, while rank 1 waits.

    Between two signs there is room for a busy machine.
    """
    hang_s = 3 * HANG_S
    run = lab.start(
        tiny(lab.folder, f"train.hang_timeout_s={hang_s}", "train.epochs=1", "train.eval_per_epoch=1")
    )
    assert [end.error for end in run_ranks(2, slow_rank, run.path, 0.4 * hang_s)] == ["", ""]
    assert run.result.exists()


def prepare_slowly(world: World, path: Path, slow_s: float) -> str:
    prepare = TextsTask.prepare

    def slowly(*arguments: Any) -> str:
        threading.Event().wait(slow_s)
        return prepare(*arguments)

    with patch.object(TextsTask, "prepare", slowly):
        return train_rank(world, path, "")


@pytest.mark.slow
def test_data_preparation_has_no_time_limit(lab: Lab) -> None:
    """It takes longer than the hang timeout and the collective timeout."""
    run = lab.start(
        tiny(
            lab.folder,
            f"train.hang_timeout_s={2 * HANG_S}",
            f"train.collective_timeout_s={3 * HANG_S}",
            "train.epochs=1",
            "seed=3",
        )
    )
    assert [end.value for end in run_ranks(2, prepare_slowly, run.path, 4 * HANG_S)] == ["finished"] * 2


def prepare_badly(world: World, path: Path) -> str:
    with patch.object(TextsTask, "prepare", side_effect=DataError("the table is empty")):
        return train_rank(world, path, "")


def test_failed_data_preparation_ends_the_waiting_ranks(lab: Lab, experiment: Experiment) -> None:
    run = lab.start(experiment)
    first, second = run_ranks(2, prepare_badly, run.path)
    assert first.error == "DataError: the table is empty"
    assert second.error
    assert read_json(run.failure)["class"] == "input"
    classes = {event["class"] for event in events(run, "failure")}
    assert classes <= {"input", "peer_lost"}


# -- heartbeats


def watched(run: RunDir) -> Watchdog:
    pulse = Pulse(phase="forward", step=7, beats=3, limit_s=60.0)
    return Watchdog(run, replace(World.single(), nonce="n"), 2.0, lambda: pulse)


def test_heartbeat_has_phase_step_and_process_of_the_rank(run: RunDir) -> None:
    with watched(run):
        heartbeat = read_json(run.heartbeat("n", 0))
    expected = {"rank": 0, "pid": os.getpid(), "phase": "forward", "step": 7, "beats": 3, "waits": False}
    assert {name: heartbeat[name] for name in expected} == expected
    assert heartbeat["time"] > 0
    assert is_here("earlier-name", heartbeat["boot"])
    assert not list(run.path.rglob("*.tmp"))


def test_unwritable_heartbeat_does_not_end_a_rank(run: RunDir) -> None:
    run.heartbeat("n", 0).mkdir(parents=True)
    with watched(run):
        assert run.heartbeat("n", 0).is_dir()


def test_time_asleep_does_not_count_as_standing_still(run: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """A suspended job, or a laptop: when it wakes up nothing has stood still but the clock."""
    now = [1000.0]
    monkeypatch.setattr("toolkit.reliability.watchdog.time.monotonic", lambda: now[0])
    watchdog = watched(run)
    still_s = []
    for passed_s in (1.0, 5.0, 5.0, 3600.0, 5.0):
        now[0] += passed_s
        still_s.append(watchdog._look().still_s)
    assert still_s == [0.0, 5.0, 10.0, 0.0, 5.0]


@pytest.mark.parametrize("limit_s, is_silent", [(2.0, True), (600.0, False), (None, True)])
def test_allowed_silence_of_a_rank_grows_with_the_limit_of_its_phase(
    run: RunDir, monkeypatch: pytest.MonkeyPatch, limit_s: float | None, is_silent: bool
) -> None:
    """Drawing the report can hold up its thread for seconds."""
    now = [1000.0]
    monkeypatch.setattr("toolkit.reliability.watchdog.time.monotonic", lambda: now[0])
    world = World(rank=0, size=2, local_rank=0, local_size=2, nonce="n")
    watchdog = Watchdog(run, world, 2.0, lambda: Pulse(phase="communication", step=7, limit_s=2.0))
    run.heartbeat("n", 1).parent.mkdir()
    write_json(run.heartbeat("n", 1), {"rank": 1, "phase": "report", "limit_s": limit_s})
    assert not watchdog._peer(1, 2.0).is_silent
    now[0] += 10.0
    assert watchdog._peer(1, 2.0).is_silent == is_silent
    write_json(run.heartbeat("n", 1), {"rank": 1, "phase": "report", "limit_s": limit_s, "count": 2})
    assert not watchdog._peer(1, 2.0).is_silent


def test_watchdog_thread_ends_with_training(run: RunDir) -> None:
    with watched(run):
        assert "watchdog" in [thread.name for thread in threading.enumerate()]
    assert "watchdog" not in [thread.name for thread in threading.enumerate()]
