"""What becomes of a run after a start has ended: budgets, classes, strikes, and runs that go nowhere."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.toolkit.tiny import events, tiny
from toolkit.attempts.ledger import explain_last, read_attempts
from toolkit.attempts.recovery import (
    STARTS_FROM_ONE_STEP,
    after_failure,
    after_stop,
    check_progress,
    conclude,
    release,
    settle,
    suspect_hosts,
)
from toolkit.config import Experiment
from toolkit.errors import NoProgress
from toolkit.failure.records import KINDS, PEER_LOST, Policy, failure_record, write_first
from toolkit.files import append_json_line, read_json, write_json
from toolkit.rundir import RunDir
from toolkit.world import World

STOPS = ("preempted", "time_limit", "requested", "SIGTERM", "finished")
FAILURES = tuple(KINDS)


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return RunDir(tmp_path)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    return tiny(tmp_path_factory.mktemp("data"))


def with_budget(experiment: Experiment, **budgets: int) -> Experiment:
    return replace(experiment, resources=replace(experiment.resources, **budgets))


def start(run: RunDir, *, of: int, to: int | None = None, why: str | None = None, **facts: Any) -> None:
    """A start in the ledger: from a step to a step; to is None where it was killed before its end."""
    number = 1 + len(read_attempts(run))
    line: dict[str, Any] = {
        "attempt": number,
        "nonce": f"start{number}",
        "hosts": ["w1"],
        "time_start": 1000.0 * number,
        "first_step": of,
        "resumed": of > 0,
        **facts,
    }
    if to is not None:
        line.update(last_step=to, time_end=1000.0 * number + 60)
    if to is not None and to > of:
        line["first_step_s"] = 5.0
    if why is not None:
        line["why"] = why
    append_json_line(run.attempts, line)


def crash(run: RunDir, why: str, *, step: int = 7, rank: int = 1, host: str = "w2", of: int = 0) -> None:
    """A start that made steps and then failed."""
    blamed = host if KINDS[why].blames_host else None
    start(run, of=of, to=step, why=why, step=step, rank=rank, host=host, blamed=blamed)


# -- classes and budgets


@pytest.mark.parametrize("why", [name for name, kind in KINDS.items() if kind.policy is Policy.RETRY])
def test_failure_of_the_infrastructure_is_retried(run: RunDir, plain: Experiment, why: str) -> None:
    crash(run, why)
    decision = after_failure(run, plain)
    assert decision.action == "retry"
    assert "rank 1 on w2" in decision.why


@pytest.mark.parametrize("why", [name for name, kind in KINDS.items() if kind.policy is Policy.STOP])
def test_failure_of_the_user_is_not(run: RunDir, plain: Experiment, why: str) -> None:
    crash(run, why)
    assert after_failure(run, plain).action == "stop"


def test_crashes_have_a_budget(run: RunDir, plain: Experiment) -> None:
    experiment = with_budget(plain, max_crashes=2)
    for step in (5, 9):
        crash(run, "killed", step=step)
        assert after_failure(run, experiment).action == "retry"
    crash(run, "io", step=12)
    decision = after_failure(run, experiment)
    assert decision.action == "stop"
    assert "resources.max_crashes lets it go on after 2" in decision.why


def test_preemptions_are_no_crashes(run: RunDir, plain: Experiment) -> None:
    experiment = with_budget(plain, max_crashes=1, max_timeouts=0)
    for number in range(50):
        start(run, of=number, to=number + 1, why="preempted")
        assert after_stop(run, experiment, "preempted").action == "retry"
    crash(run, "killed", of=50, step=51)
    assert after_failure(run, experiment).action == "retry"


def test_time_limits_have_a_budget_of_their_own(run: RunDir, plain: Experiment) -> None:
    experiment = with_budget(plain, max_crashes=0, max_timeouts=2)
    for number in range(2):
        start(run, of=number, to=number + 1, why="time_limit")
        assert after_stop(run, experiment, "time_limit").action == "retry"
    # Nobody has explained the last signal in the ledger yet.
    start(run, of=2, to=3, why="SIGUSR2")
    decision = after_stop(run, experiment, "time_limit")
    assert decision.action == "stop"
    assert "resources.max_timeouts is 2" in decision.why
    assert after_stop(run, experiment, "preempted").action == "retry"


def test_cancelled_run_stays_where_it_is(run: RunDir, plain: Experiment) -> None:
    start(run, of=0, to=5, why="SIGTERM")
    assert after_stop(run, plain, "cancelled").action == "stop"
    explain_last(run, "cancelled", by="somebody")
    assert after_failure(run, plain).action == "stop"
    assert read_attempts(run)[-1]["by"] == "somebody"


def test_divergence_is_tried_again_once_for_each_step(run: RunDir, plain: Experiment) -> None:
    crash(run, "diverged", step=7)
    assert after_failure(run, plain).action == "retry"
    crash(run, "diverged", step=9)
    assert after_failure(run, plain).action == "retry"
    crash(run, "diverged", step=7)
    decision = after_failure(run, plain)
    assert decision.action == "stop"
    assert "again at the same step" in decision.why


def test_quarantine_gets_the_failures_that_it_needs_to_find_a_sample(run: RunDir, plain: Experiment) -> None:
    experiment = with_budget(replace(plain, train=replace(plain.train, quarantine=1)), max_crashes=2)
    for _ in range(2):
        crash(run, "exception", step=7)
        assert after_failure(run, experiment).action == "retry"
    write_json(run.quarantine, {"samples": [{"id": 3, "step": 8, "reason": "it fails"}]})
    # Its two failures are cured, and so is the budget.
    crash(run, "exception", step=9)
    assert after_failure(run, experiment).action == "retry"
    crash(run, "exception", step=9)
    decision = after_failure(run, experiment)
    assert decision.action == "stop"
    assert "quarantine has not helped" in decision.why


def test_error_before_training_is_no_samples_fault(run: RunDir, plain: Experiment) -> None:
    experiment = replace(plain, train=replace(plain.train, quarantine=5))
    append_json_line(run.attempts, {"attempt": 1, "nonce": "n", "why": "exception", "rank": 0, "step": 0})
    assert after_failure(run, experiment).action == "stop"


# -- hosts


def test_host_is_avoided_after_two_strikes(run: RunDir, plain: Experiment) -> None:
    crash(run, "hang", host="w2", step=5)
    crash(run, "killed", host="w3", step=6)
    assert after_failure(run, plain).exclude == ()
    crash(run, "ranks_diverged", host="w2", step=7)
    assert after_failure(run, plain).exclude == ("w2",)
    assert after_stop(run, plain, "preempted").exclude == ("w2",)


@pytest.mark.parametrize("why", ["exception", "peer_lost", "rendezvous", "io", "diverged"])
def test_host_where_a_failure_was_only_noticed_gets_no_strike(run: RunDir, why: str) -> None:
    for _ in range(3):
        crash(run, why, host="w2")
    assert suspect_hosts(run) == ()


def test_strike_that_the_scheduler_names_counts(run: RunDir) -> None:
    for _ in range(2):
        start(run, of=0, to=4, why="SIGTERM")
        explain_last(run, "node_failure", host="w4")
    assert suspect_hosts(run) == ("w4",)


# -- runs that go nowhere


def test_three_starts_without_a_step_hold_the_run(run: RunDir, plain: Experiment) -> None:
    for _ in range(2):
        start(run, of=4, to=4, why="killed", rank=0, host="w1")
        assert after_failure(run, plain).action == "retry"
        check_progress(run)
    write_first(
        run, failure_record("start3", "killed", "out of memory", rank=0, host="w1", phase="x", step=4)
    )
    start(run, of=4, to=4, why="killed", rank=0, host="w1")
    decision = after_failure(run, plain)
    assert decision.action == "hold"
    assert "3 starts in a row made no step" in decision.why
    failure = read_json(run.failure)
    assert failure["class"] == "no_progress"
    assert failure["message"].endswith("out of memory")
    assert "stk resume" in failure["advice"]
    with pytest.raises(NoProgress, match="3 starts in a row made no step"):
        check_progress(run)


def test_holding_again_says_the_same(run: RunDir, plain: Experiment) -> None:
    for _ in range(3):
        start(run, of=0, to=0, why="killed")
    first, text = after_failure(run, plain), run.failure.read_text()
    assert after_failure(run, plain) == first
    assert run.failure.read_text() == text


def test_start_with_a_step_begins_the_count_anew(run: RunDir) -> None:
    start(run, of=0)
    start(run, of=0)
    start(run, of=0, to=1, why="preempted")
    start(run, of=1)
    start(run, of=1)
    check_progress(run)
    start(run, of=1)
    with pytest.raises(NoProgress):
        check_progress(run)


def test_finding_all_steps_done_and_finishing_is_progress(run: RunDir) -> None:
    start(run, of=16)
    start(run, of=16)
    start(run, of=16, to=16, why="finished")
    check_progress(run)


def test_preempted_before_the_first_step_three_times_is_held_too(run: RunDir, plain: Experiment) -> None:
    for _ in range(3):
        start(run, of=0, to=0, why="preempted")
    assert after_stop(run, plain, "preempted").action == "hold"


def test_steps_that_are_never_saved_are_no_progress_for_ever(run: RunDir, plain: Experiment) -> None:
    for _ in range(STARTS_FROM_ONE_STEP - 1):
        start(run, of=4, to=9, why="requeued")
        check_progress(run)
    start(run, of=4, to=9, why="requeued")
    with pytest.raises(NoProgress, match=r"none saved a later one: save more often"):
        check_progress(run)
    run.checkpoint(8).mkdir(parents=True)
    check_progress(run)


def test_release_begins_all_counts_anew_but_keeps_the_strikes(run: RunDir, plain: Experiment) -> None:
    for _ in range(5):
        crash(run, "hang", step=0)
    assert after_failure(run, plain).action == "stop"
    release(run)
    check_progress(run)
    crash(run, "hang", step=8)
    decision = after_failure(run, plain)
    assert (decision.action, decision.exclude) == ("retry", ("w2",))


def test_release_that_only_says_when_counts_as_well(run: RunDir) -> None:
    for _ in range(3):
        start(run, of=0)
    append_json_line(run.events, {"time": 3500.0, "event": "released"})
    check_progress(run)


def test_run_that_never_began_needs_no_release(run: RunDir) -> None:
    release(run)
    assert not run.events.exists()


LINES = st.lists(
    st.tuples(
        st.sampled_from([*STOPS, *FAILURES]),
        st.integers(0, 3),
        st.integers(0, 3),
        st.sampled_from(["w1", "w2", "w3"]),
    ),
    min_size=1,
    max_size=14,
)


@given(lines=LINES, max_crashes=st.integers(0, 4), max_timeouts=st.integers(0, 4))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_run_is_started_for_ever(
    plain: Experiment,
    tmp_path_factory: pytest.TempPathFactory,
    lines: Sequence[tuple[str, int, int, str]],
    max_crashes: int,
    max_timeouts: int,
) -> None:
    """Whatever the ledger says: a retry keeps within all budgets, asking changes no answer, hosts have
    been blamed twice, and three starts without a step end it."""
    run = RunDir(tmp_path_factory.mktemp("run"))
    experiment = with_budget(plain, max_crashes=max_crashes, max_timeouts=max_timeouts)
    for why, of, steps, host in lines:
        if why in KINDS:
            crash(run, why, of=of, step=of + steps, host=host)
        else:
            start(run, of=of, to=of + steps, why=why)
    last = lines[-1][0]
    decision = after_failure(run, experiment) if last in KINDS else after_stop(run, experiment, last)
    again = after_failure(run, experiment) if last in KINDS else after_stop(run, experiment, last)
    assert decision == again
    assert all(sum(host == line[3] for line in lines if line[0] in KINDS) >= 2 for host in decision.exclude)
    idle = len(lines) >= 3 and all(steps == 0 and why != "finished" for why, _, steps, _ in lines[-3:])
    if decision.action == "retry":
        assert last not in KINDS or sum(why in KINDS for why, *_ in lines) <= max_crashes
        assert last != "time_limit" or sum(why == last for why, *_ in lines) <= max_timeouts
        assert not idle
        check_progress(run)
    if decision.action == "hold" and last != "no_progress":
        assert read_json(run.failure)["class"] == "no_progress"


# -- what a start could not say itself


def ranks_of(run: RunDir, nonce: str, *hosts: str) -> None:
    run.ranks(nonce).parent.mkdir(exist_ok=True)
    for rank, host in enumerate(hosts):
        append_json_line(run.ranks(nonce), {"rank": rank, "host": host})


def report(run: RunDir, nonce: str, name: str, rank: int, host: str, step: int = 7) -> None:
    write_first(
        run, failure_record(nonce, name, f"{name}!", rank=rank, host=host, phase="forward", step=step)
    )


def test_killed_start_gets_the_class_of_its_failure(run: RunDir) -> None:
    start(run, of=4)
    report(run, "start1", "hang", 3, "w2")
    conclude(run, 77)
    (line,) = read_attempts(run)
    assert (line["why"], line["rank"], line["host"], line["step"]) == ("hang", 3, "w2", 7)
    assert line["last_step"] == 4


def test_rank_that_said_nothing_is_the_one_that_died(run: RunDir, plain: Experiment) -> None:
    """The others only lost it; its heartbeat tells how far it was."""
    start(run, of=4)
    ranks_of(run, "start1", "w1", "w1", "w2", "w2")
    for rank in (0, 1, 3):
        report(run, "start1", PEER_LOST, rank, "w1")
    write_json(run.heartbeat("start1", 2), {"rank": 2, "phase": "backward", "step": 6, "time": 1042.0})
    conclude(run, 137)
    failure = read_json(run.failure)
    assert (failure["class"], failure["rank"], failure["host"]) == ("killed", 2, "w2")
    assert (failure["phase"], failure["step"]) == ("backward", 7)
    assert failure["message"] == (
        "rank 2 on w2 died without a word (status 137), last seen in backward at step 6"
    )
    assert read_attempts(run)[0]["blamed"] == "w2"
    assert after_failure(run, plain).action == "retry"


def test_host_whose_ranks_all_say_nothing_is_named(run: RunDir) -> None:
    start(run, of=4, to=7, why=PEER_LOST, rank=0, host="w1", step=7)
    ranks_of(run, "start1", "w1", "w1", "w2", "w2")
    for rank in (0, 1):
        report(run, "start1", PEER_LOST, rank, "w1")
    conclude(run, 1)
    assert "ranks 2, 3 on w2 died" in read_json(run.failure)["message"]
    assert read_attempts(run)[0]["why"] == "killed"


def test_silent_ranks_on_several_hosts_blame_nobody(run: RunDir) -> None:
    start(run, of=4)
    ranks_of(run, "start1", "w1", "w2", "w3")
    report(run, "start1", PEER_LOST, 0, "w1")
    conclude(run, 1)
    (line,) = read_attempts(run)
    assert (line["why"], line["blamed"]) == (PEER_LOST, None)


def test_nobody_said_anything(run: RunDir) -> None:
    start(run, of=4, hosts=["w1", "w2"])
    conclude(run, 137)
    (line,) = read_attempts(run)
    assert (line["why"], line["blamed"]) == ("killed", None)
    assert read_json(run.failure)["message"].startswith("all ranks died without a word (status 137)")


def test_concluding_twice_changes_nothing(run: RunDir) -> None:
    start(run, of=4, job_id="12", restart=1)
    for _ in range(2):
        conclude(run, 1, job="12", restart=1)
        assert [line["why"] for line in read_attempts(run)] == ["killed"]


@pytest.mark.parametrize(
    "code, why, words",
    [
        (1, "exception", "status 1"),
        (-9, "killed", "SIGKILL"),
        (137, "killed", "SIGKILL"),
        # Slurm's error 1001, a host that could not be reached, as srun passes it on.
        (1001 % 256, "launch", "status 233"),
    ],
)
def test_start_that_died_before_it_could_write_gets_a_line(
    run: RunDir, plain: Experiment, code: int, why: str, words: str
) -> None:
    """Such as one whose code cannot be imported: the failure of the one before is not its own."""
    start(run, of=0, to=4, why="hang", rank=1, host="w2", step=4)
    report(run, "start1", "hang", 1, "w2")
    conclude(run, 77, nonce="start1")
    conclude(run, code, nonce="start2")
    first, second = read_attempts(run)
    assert (first["why"], second["why"], second["nonce"]) == ("hang", why, "start2")
    failure = read_json(run.failure)
    assert words in failure["message"]
    assert failure["nonce"] == "start2"
    assert after_failure(run, plain).action == ("stop" if why == "exception" else "retry")


def test_starts_that_write_nothing_are_told_apart_without_their_name(run: RunDir) -> None:
    start(run, of=0, to=4, why="preempted")
    for number in (2, 3):
        conclude(run, 1)
        assert len(read_attempts(run)) == number
    assert [line["why"] for line in read_attempts(run)] == ["preempted", "exception", "exception"]


def test_failure_of_a_start_without_a_line_is_taken_over(run: RunDir) -> None:
    start(run, of=0, to=4, why="preempted")
    report(run, "start2", "no_progress", 0, "w1")
    conclude(run, 4)
    assert read_attempts(run)[-1]["why"] == "no_progress"
    assert read_json(run.failure)["message"] == "no_progress!"


def test_start_that_ended_in_order_keeps_its_word(run: RunDir, plain: Experiment) -> None:
    """It had saved when handing over the job failed."""
    start(run, of=0, to=4, why="preempted", job_id="12", restart=0)
    conclude(run, 3, job="12", restart=0)
    (line,) = read_attempts(run)
    assert line["why"] == "preempted"
    assert not run.failure.exists()
    assert after_failure(run, plain).action == "retry"


def test_next_start_settles_what_the_one_before_could_not_write(run: RunDir) -> None:
    start(run, of=0, job_id="12", restart=0)
    settle(run, World(rank=0, size=1, local_rank=0, local_size=1, nonce="b", job="13"))
    assert read_attempts(run)[0]["why"] == "killed"
    before = run.attempts.read_text()
    settle(run, World(rank=0, size=1, local_rank=0, local_size=1, nonce="c", job="14"))
    assert run.attempts.read_text() == before


def test_job_that_the_scheduler_took_back_has_not_crashed(run: RunDir, plain: Experiment) -> None:
    """A preemption without time to save looks like a kill: only that the same job comes back tells."""
    experiment = with_budget(plain, max_crashes=0)
    for restart in range(4):
        start(run, of=0, job_id="12", restart=restart, first_step_s=4.0)
        if restart == 2:
            # Not all ranks are killed in the same moment.
            report(run, f"start{restart + 1}", PEER_LOST, 0, "w1")
        world = World(rank=0, size=1, local_rank=0, local_size=1, nonce="n", job="12", restart=restart + 1)
        settle(run, world)
        assert read_attempts(run)[-1]["why"] == "requeued"
        assert after_stop(run, experiment, "requeued").action == "retry"


def test_job_that_the_scheduler_took_back_after_a_failure_has_failed(run: RunDir) -> None:
    start(run, of=0, job_id="12", restart=0)
    report(run, "start1", "hang", 1, "w2")
    settle(run, World(rank=0, size=1, local_rank=0, local_size=1, nonce="n", job="12", restart=1))
    assert read_attempts(run)[0]["why"] == "hang"


def test_event_tells_that_a_run_is_held(run: RunDir, plain: Experiment) -> None:
    for _ in range(3):
        start(run, of=0, to=0, why="killed")
    after_failure(run, plain)
    (held,) = events(run, "held")
    assert "made no step" in held["why"]
    assert json.loads(run.failure.read_text())["rank"] == 0
