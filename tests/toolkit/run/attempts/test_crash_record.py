"""How an attempt ended that could not say so itself."""

from __future__ import annotations

import pytest

from tests.toolkit.run.attempts.attempts import crash, ranks_of, report, start, with_budget
from tests.toolkit.run.failure.test_log_end import ENDS
from toolkit.config import Experiment
from toolkit.files import read_json, write_json
from toolkit.reliability.restart_policy import after_failure, after_stop
from toolkit.run.attempts.crash_record import CrashHint, close_open_attempt, record_crash
from toolkit.run.attempts.records import read_attempts
from toolkit.run.failure.classes import PEER_LOST
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World


def test_killed_start_gets_the_class_of_its_failure(run: RunDir) -> None:
    start(run, of=4)
    report(run, "start1", "hang", 3, "w2")
    record_crash(run, 77)
    (line,) = read_attempts(run)
    assert (line.why, line.rank, line.host, line.step) == ("hang", 3, "w2", 7)
    assert line.last_step == 4


def test_rank_that_said_nothing_is_the_one_that_died(run: RunDir, plain: Experiment) -> None:
    """The others only lost it; its heartbeat tells how far it was."""
    start(run, of=4)
    ranks_of(run, "start1", "w1", "w1", "w2", "w2")
    for rank in (0, 1, 3):
        report(run, "start1", PEER_LOST, rank, "w1")
    write_json(run.heartbeat("start1", 2), {"rank": 2, "phase": "backward", "step": 6, "time": 1042.0})
    record_crash(run, 137)
    failure = read_json(run.failure)
    assert (failure["class"], failure["rank"], failure["host"]) == ("killed", 2, "w2")
    assert (failure["phase"], failure["step"]) == ("backward", 7)
    assert failure["message"] == (
        "rank 2 on w2 exited without an error message (status 137), last seen in backward at step 6"
    )
    assert read_attempts(run)[0].blamed == "w2"
    assert after_failure(run, plain).action == "retry"


def test_a_heartbeat_from_before_the_resume_gives_no_step(run: RunDir) -> None:
    """It is seconds old: the rank had loaded step 5, and was further."""
    start(run, of=5)
    ranks_of(run, "start1", "w1", "w2")
    for rank, phase in enumerate(("forward", "rendezvous")):
        seen = {"rank": rank, "phase": phase, "step": 7 * (1 - rank), "time": 1042.0}
        write_json(run.heartbeat("start1", rank), seen)
    report(run, "start1", PEER_LOST, 0, "w1", step=5)
    record_crash(run, 137)
    failure = read_json(run.failure)
    assert (failure["rank"], failure["phase"], failure["step"]) == (1, "program", 5)


@pytest.mark.parametrize(
    "ends, kind, blamed",
    [
        # NCCL's watchdog ends every rank that waits for one that has died.
        (("time-out", "time-out", "ecc", "time-out"), "device", "w2"),
        (("time-out", "time-out", "time-out", "time-out"), "communication", None),
    ],
)
def test_ranks_that_a_library_ended_are_explained_by_their_logs(
    run: RunDir, plain: Experiment, ends: tuple[str, ...], kind: str, blamed: str | None
) -> None:
    start(run, of=4)
    ranks_of(run, "start1", "w1", "w1", "w2", "w2")
    run.logs.mkdir(exist_ok=True)
    for rank, end in enumerate(ends):
        run.log("start1", rank).write_text(ENDS[end][0])
    record_crash(run, 134)
    assert read_json(run.failure)["class"] == kind
    assert read_attempts(run)[0].blamed == blamed
    assert after_failure(run, plain).action == "retry"


def test_host_whose_ranks_all_say_nothing_is_named(run: RunDir) -> None:
    start(run, of=4, to=7, why=PEER_LOST, rank=0, host="w1", step=7)
    ranks_of(run, "start1", "w1", "w1", "w2", "w2")
    for rank in (0, 1):
        report(run, "start1", PEER_LOST, rank, "w1")
    record_crash(run, 1)
    assert "ranks 2, 3 on w2" in read_json(run.failure)["message"]
    assert read_attempts(run)[0].why == "killed"


def test_the_only_command_without_an_end_is_the_one_that_died(run: RunDir) -> None:
    start(run, of=2)
    ranks_of(run, "start1", "w1", "w2")
    write_json(run.process("start1", 0), {"rank": 0, "host": "w1", "pid": 12, "ended": 1042.0})
    write_json(run.process("start1", 1), {"rank": 1, "host": "w2", "pid": 12})
    record_crash(run, 137)
    (line,) = read_attempts(run)
    assert (line.why, line.rank, line.blamed) == ("killed", 1, "w2")


def test_silent_ranks_on_several_hosts_blame_nobody(run: RunDir) -> None:
    start(run, of=4)
    ranks_of(run, "start1", "w1", "w2", "w3")
    report(run, "start1", PEER_LOST, 0, "w1")
    record_crash(run, 1)
    (line,) = read_attempts(run)
    assert (line.why, line.blamed) == (PEER_LOST, None)


def test_nobody_said_anything(run: RunDir) -> None:
    start(run, of=4, hosts=["w1", "w2"])
    record_crash(run, 137)
    (line,) = read_attempts(run)
    assert (line.why, line.blamed) == ("killed", None)
    message = read_json(run.failure)["message"]
    assert message.startswith("all ranks exited without an error message (status 137)")


def test_concluding_twice_changes_nothing(run: RunDir) -> None:
    start(run, of=4, job_id="12", restart=1)
    for _ in range(2):
        record_crash(run, 1, job="12", restart=1)
        assert [line.why for line in read_attempts(run)] == ["killed"]


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
    record_crash(run, 77, nonce="start1")
    record_crash(run, code, nonce="start2")
    first, second = read_attempts(run)
    assert (first.why, second.why, second.nonce) == ("hang", why, "start2")
    failure = read_json(run.failure)
    assert words in failure["message"]
    assert failure["nonce"] == "start2"
    assert after_failure(run, plain).action == ("stop" if why == "exception" else "retry")


def test_starts_that_write_nothing_are_told_apart_without_their_name(run: RunDir) -> None:
    start(run, of=0, to=4, why="preempted")
    for number in (2, 3):
        record_crash(run, 1)
        assert len(read_attempts(run)) == number
    assert [line.why for line in read_attempts(run)] == ["preempted", "exception", "exception"]


def test_failure_of_a_start_without_a_line_is_taken_over(run: RunDir) -> None:
    start(run, of=0, to=4, why="preempted")
    report(run, "start2", "no_progress", 0, "w1")
    record_crash(run, 4)
    assert read_attempts(run)[-1].why == "no_progress"
    assert read_json(run.failure)["message"] == "no_progress!"


def test_start_that_ended_in_order_keeps_its_word(run: RunDir, plain: Experiment) -> None:
    """It had saved when handing over the job failed."""
    start(run, of=0, to=4, why="preempted", job_id="12", restart=0)
    record_crash(run, 3, job="12", restart=0)
    (line,) = read_attempts(run)
    assert line.why == "preempted"
    assert not run.failure.exists()
    assert after_failure(run, plain).action == "retry"


def test_next_start_settles_what_the_one_before_could_not_write(run: RunDir) -> None:
    start(run, of=0, job_id="12", restart=0)
    close_open_attempt(run, World(rank=0, size=1, local_rank=0, local_size=1, nonce="b", job="13"))
    assert read_attempts(run)[0].why == "killed"
    before = run.attempts.read_text()
    close_open_attempt(run, World(rank=0, size=1, local_rank=0, local_size=1, nonce="c", job="14"))
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
        close_open_attempt(run, world)
        assert read_attempts(run)[-1].why == "requeued"
        assert after_stop(run, experiment, "requeued").action == "retry"


def test_job_that_the_scheduler_took_back_after_a_failure_has_failed(run: RunDir) -> None:
    start(run, of=0, job_id="12", restart=0)
    report(run, "start1", "hang", 1, "w2")
    close_open_attempt(run, World(rank=0, size=1, local_rank=0, local_size=1, nonce="n", job="12", restart=1))
    assert read_attempts(run)[0].why == "hang"


# ---- memory that ran out, as others than the ranks know it


def test_rank_whose_memory_ran_out_is_named_though_others_only_lost_it(
    run: RunDir, plain: Experiment
) -> None:
    start(run, of=4, hosts=["w1", "w2"])
    ranks_of(run, "start1", "w1", "w1", "w2", "w2")
    report(run, "start1", PEER_LOST, 0, "w1")
    failure_context = {"batch": {"samples": 8}, "memory": {"rss_mb": 900.0}}
    seen = {"rank": 3, "phase": "backward", "step": 6, "time": 1042.0, "scene": failure_context}
    write_json(run.heartbeat("start1", 3), seen)
    record_crash(run, 137, hint=CrashHint(kind="oom_killed", rank=3))
    failure = read_json(run.failure)
    assert (failure["class"], failure["rank"], failure["host"], failure["blamed"]) == (
        "oom_killed",
        3,
        "w2",
        None,
    )
    assert failure["message"].startswith("rank 3 on w2 was killed (memory ran out, status 137), last seen in")
    assert (failure["batch"], failure["memory"]) == ({"samples": 8}, {"rss_mb": 900.0})
    # Once more, for a leak may have been it; not if it comes again at the same step.
    assert after_failure(run, plain).action == "retry"
    record_crash(run, 137, hint=CrashHint(kind="oom_killed", rank=3))
    crash(run, "oom_killed", step=7, rank=3)
    assert after_failure(run, plain).action == "stop"


def test_memory_that_ran_out_somewhere_is_no_plain_kill(run: RunDir) -> None:
    start(run, of=4)
    record_crash(run, 137, hint=CrashHint(kind="oom_killed"))
    failure = read_json(run.failure)
    assert failure["class"] == "oom_killed"
    cause = "(memory ran out, status 137)"
    assert failure["message"].startswith(f"all ranks exited without an error message {cause}")


def test_what_a_rank_said_itself_stands(run: RunDir) -> None:
    start(run, of=4)
    report(run, "start1", "exception", 1, "w1")
    record_crash(run, 137, hint=CrashHint(kind="oom_killed", rank=0))
    assert read_json(run.failure)["class"] == "exception"
