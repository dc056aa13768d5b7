"""How the end of an attempt is recorded that could not record it itself."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from tests.toolkit.run.attempts.attempts import crash, ranks_of, report, start, with_budget
from tests.toolkit.run.failure.test_log_end import ENDS
from toolkit.config import Experiment
from toolkit.exit_codes import ExitCode
from toolkit.files import append_json_line, read_json, write_json
from toolkit.reliability.restart_policy import after_failure, after_stop
from toolkit.run.attempts.crash_record import CrashHint, close_open_attempt, conclude_attempt, record_crash
from toolkit.run.attempts.records import read_attempts
from toolkit.run.failure.classes import PEER_LOST
from toolkit.run.failure.records import forget_failure
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World


def test_killed_attempt_is_recorded_with_the_class_of_its_failure(run: RunDir) -> None:
    start(run, of=4)
    report(run, "start1", "hang", 3, "w2")
    record_crash(run, 77)
    (line,) = read_attempts(run)
    assert (line.why, line.rank, line.host, line.step) == ("hang", 3, "w2", 7)
    assert line.last_step == 4


def test_silent_rank_among_lost_peers_is_recorded_as_killed(run: RunDir, plain: Experiment) -> None:
    """The other ranks only lost a peer; the heartbeat of the silent rank has its step."""
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


def test_heartbeat_from_before_the_resume_sets_neither_step_nor_batch(run: RunDir) -> None:
    """The heartbeat is seconds old; the rank had already loaded step 5. Its memory and GPU stay known."""
    start(run, of=5)
    ranks_of(run, "start1", "w1", "w2")
    for rank, phase in enumerate(("forward", "rendezvous")):
        scene = {"gpu": {"index": 3}, "batch": {"samples": 8}, "memory": {"rss_mb": 900.0}}
        seen = {"rank": rank, "phase": phase, "step": 7 * (1 - rank), "time": 1042.0, "scene": scene}
        write_json(run.heartbeat("start1", rank), seen)
    report(run, "start1", PEER_LOST, 0, "w1", step=5)
    record_crash(run, 137)
    failure = read_json(run.failure)
    assert (failure["rank"], failure["phase"], failure["step"]) == (1, "program", 5)
    assert (failure["gpu"], failure["memory"]) == ({"index": 3}, {"rss_mb": 900.0})
    assert "batch" not in failure


@pytest.mark.parametrize("attempt, saved, step", [(1, 4, 18), (1, 20, 20), (2, 4, 6)])
def test_end_of_killed_ranks_is_their_newest_sign_of_life(
    run: RunDir, attempt: int, saved: int, step: int
) -> None:
    """A heartbeat is up to 15 s old, progress.json 2 s; a checkpoint has its step."""
    start(run, of=4)
    run.ranks("start1").parent.mkdir(exist_ok=True)
    write_json(run.heartbeat("start1", 0), {"rank": 0, "phase": "forward", "step": 6, "time": 1042.0})
    write_json(run.progress, {"attempt": attempt, "step": 18, "time": 1055.0})
    run.checkpoint(saved).mkdir(parents=True)
    record_crash(run, 137)
    (line,) = read_attempts(run)
    assert (line.last_step, line.time_end) == (step, 1055.0 if attempt == 1 else 1042.0)
    assert line.step == (18 if attempt == 1 else 6)


def test_killed_command_without_steps_has_no_last_step(run: RunDir) -> None:
    line = {"attempt": 1, "nonce": "start1", "hosts": ["w0"], "world_size": 1, "time_start": 1000.0}
    append_json_line(run.attempts, {**line, "first_step": None, "resumed": False, "saved": True})
    record_crash(run, 137)
    (attempt,) = read_attempts(run)
    assert (attempt.why, attempt.last_step) == ("killed", None)


@pytest.mark.parametrize(
    "ends, kind, blamed",
    [
        (("time-out", "fault", "time-out", "time-out"), "segfault", None),
        # A process may have a fault as it goes down.
        (("fault", "time-out", "ecc", "time-out"), "device", "w2"),
        # NCCL's watchdog ends every rank that waits for one that has died.
        (("time-out", "time-out", "ecc", "time-out"), "device", "w2"),
        (("time-out", "time-out", "time-out", "time-out"), "communication", None),
    ],
)
def test_ranks_aborted_by_a_library_are_explained_by_their_logs(
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


def test_host_with_only_silent_ranks_is_named(run: RunDir) -> None:
    start(run, of=4, to=7, why=PEER_LOST, rank=0, host="w1", step=7)
    ranks_of(run, "start1", "w1", "w1", "w2", "w2")
    for rank in (0, 1):
        report(run, "start1", PEER_LOST, rank, "w1")
    record_crash(run, 1)
    assert "ranks 2, 3 on w2" in read_json(run.failure)["message"]
    assert read_attempts(run)[0].why == "killed"


def test_ranks_and_failures_of_an_earlier_attempt_with_the_same_nonce_do_not_count(run: RunDir) -> None:
    """As torchrun starts them; the second attempt has fewer ranks, on other hosts."""
    start(run, of=0, to=4, why="exception", nonce="torchrun", rank=1, step=4)
    ranks_of(run, "torchrun", "w1", "w1", "w2", "w2", attempt=1)
    report(run, "torchrun", "exception", 1, "w1")
    forget_failure(run, "torchrun", is_reused=True)
    start(run, of=4, nonce="torchrun", time_start=time.time())
    ranks_of(run, "torchrun", "w3", "w4", attempt=2)
    report(run, "torchrun", PEER_LOST, 0, "w3")
    record_crash(run, 137)
    line = read_attempts(run)[-1]
    assert (line.why, line.rank, line.blamed) == ("killed", 1, "w4")


def test_only_command_without_a_recorded_end_is_the_killed_one(run: RunDir) -> None:
    start(run, of=2)
    ranks_of(run, "start1", "w1", "w2")
    write_json(run.process("start1", 0), {"rank": 0, "host": "w1", "pid": 12, "ended": 1042.0})
    write_json(run.process("start1", 1), {"rank": 1, "host": "w2", "pid": 12})
    record_crash(run, 137)
    (line,) = read_attempts(run)
    assert (line.why, line.rank, line.blamed) == ("killed", 1, "w2")


@pytest.mark.parametrize(
    "codes, how", [((4, 75, 0), "status 75, 0"), ((4, 75), "status 4"), ((), "status 4")]
)
def test_silent_ranks_are_described_with_their_own_exit_status(
    run: RunDir, codes: tuple[int, ...], how: str
) -> None:
    """If a machine is lost, it is not known whose statuses the others are."""
    start(run, of=4, world_size=3)
    ranks_of(run, "start1", "w1", "w1", "w1")
    report(run, "start1", PEER_LOST, 0, "w1")
    record_crash(run, 4, nonce="start1", hint=CrashHint(codes=codes))
    said = read_json(run.failure)["message"]
    assert said == f"ranks 1, 2 on w1 exited without an error message ({how})"


def test_silent_ranks_on_several_hosts_blame_nobody(run: RunDir) -> None:
    start(run, of=4)
    ranks_of(run, "start1", "w1", "w2", "w3")
    report(run, "start1", PEER_LOST, 0, "w1")
    record_crash(run, 1)
    (line,) = read_attempts(run)
    assert (line.why, line.blamed) == (PEER_LOST, None)


@pytest.mark.parametrize(
    "kind, how", [("killed", "(status 137)"), ("oom_killed", "(memory ran out, status 137)")]
)
def test_crash_without_any_report_blames_no_host(run: RunDir, kind: str, how: str) -> None:
    start(run, of=4, hosts=["w1", "w2"])
    record_crash(run, 137, hint=CrashHint(kind=kind))
    (line,) = read_attempts(run)
    assert (line.why, line.blamed) == (kind, None)
    message = read_json(run.failure)["message"]
    assert message.startswith(f"all ranks exited without an error message {how}")


def test_recording_a_crash_twice_changes_nothing(run: RunDir) -> None:
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
def test_attempt_that_died_before_its_first_line_gets_one(
    run: RunDir, plain: Experiment, code: int, why: str, words: str
) -> None:
    """For example an import error: the failure of the previous attempt is not used for it."""
    start(run, of=0, to=4, why="hang", rank=1, host="w2", step=4)
    report(run, "start1", "hang", 1, "w2")
    run.checkpoint(3).mkdir(parents=True)
    record_crash(run, 77, nonce="start1")
    record_crash(run, code, nonce="start2")
    first, second = read_attempts(run)
    assert (first.why, second.why, second.nonce) == ("hang", why, "start2")
    # It would have continued from the checkpoint.
    assert (second.first_step, second.last_step) == (3, 3)
    failure = read_json(run.failure)
    assert words in failure["message"]
    assert failure["nonce"] == "start2"
    assert after_failure(run, plain).action == ("stop" if why == "exception" else "retry")


def test_each_attempt_without_a_line_and_nonce_gets_its_own_line(run: RunDir) -> None:
    start(run, of=0, to=4, why="preempted")
    for number in (2, 3):
        record_crash(run, 1)
        assert len(read_attempts(run)) == number
    assert [line.why for line in read_attempts(run)] == ["preempted", "exception", "exception"]


def test_failure_of_an_attempt_without_a_line_is_kept(run: RunDir) -> None:
    start(run, of=0, to=4, why="preempted")
    report(run, "start2", "no_progress", 0, "w1")
    record_crash(run, 4)
    assert read_attempts(run)[-1].why == "no_progress"
    assert read_json(run.failure)["message"] == "no_progress!"


def test_attempt_that_ended_normally_keeps_its_reason(run: RunDir, plain: Experiment) -> None:
    """The attempt had saved before the job could not be requeued."""
    start(run, of=0, to=4, why="preempted", job_id="12", restart=0)
    record_crash(run, 3, job="12", restart=0)
    (line,) = read_attempts(run)
    assert line.why == "preempted"
    assert not run.failure.exists()
    assert after_failure(run, plain).action == "retry"


def test_next_attempt_closes_an_open_one_as_killed_and_blames_no_host(run: RunDir) -> None:
    """It may have been cancelled while it saved, with its batch script."""
    start(run, of=0, job_id="12", restart=0)
    close_open_attempt(run, replace(World.single(), job="13"))
    (line,) = read_attempts(run)
    assert (line.why, line.blamed) == ("killed", None)
    before = run.attempts.read_text()
    close_open_attempt(run, replace(World.single(), job="14"))
    assert run.attempts.read_text() == before


def test_requeued_job_does_not_count_as_a_crash(run: RunDir, plain: Experiment) -> None:
    """A preemption without time to save looks like a kill, except that the same job starts again."""
    experiment = with_budget(plain, max_crashes=0)
    for restart in range(4):
        start(run, of=0, job_id="12", restart=restart, first_step_s=4.0)
        if restart == 2:
            # Not all ranks are killed in the same moment.
            report(run, f"start{restart + 1}", PEER_LOST, 0, "w1")
        close_open_attempt(run, replace(World.single(), job="12", restart=restart + 1))
        assert read_attempts(run)[-1].why == "requeued"
        assert after_stop(run, experiment, "requeued").action == "retry"


def test_job_requeued_after_a_failure_counts_as_failed(run: RunDir) -> None:
    start(run, of=0, job_id="12", restart=0)
    report(run, "start1", "hang", 1, "w2")
    close_open_attempt(run, replace(World.single(), job="12", restart=1))
    assert read_attempts(run)[0].why == "hang"


# ---- lack of memory, as reported by the system


def test_rank_killed_for_lack_of_memory_is_named_despite_lost_peers(run: RunDir, plain: Experiment) -> None:
    start(run, of=4, hosts=["w1", "w2"])
    ranks_of(run, "start1", "w1", "w1", "w2", "w2")
    report(run, "start1", PEER_LOST, 0, "w1")
    failure_context = {"batch": {"samples": 8}, "memory": {"rss_mb": 900.0}}
    seen = {"rank": 3, "phase": "backward", "step": 6, "time": 1042.0, "scene": failure_context}
    write_json(run.heartbeat("start1", 3), seen)
    record_crash(run, 137, hint=CrashHint(kind="oom_killed", rank=3))
    failure = read_json(run.failure)
    assert (failure["class"], failure["blamed"]) == ("oom_killed", None)
    assert (failure["rank"], failure["host"]) == (3, "w2")
    assert failure["message"].startswith("rank 3 on w2 was killed (memory ran out, status 137), last seen in")
    assert (failure["batch"], failure["memory"]) == ({"samples": 8}, {"rss_mb": 900.0})
    # Once more, for a leak may have been it; not if it comes again at the same step.
    assert after_failure(run, plain).action == "retry"
    record_crash(run, 137, hint=CrashHint(kind="oom_killed", rank=3))
    crash(run, "oom_killed", step=7, rank=3)
    assert after_failure(run, plain).action == "stop"


def test_report_of_a_rank_takes_precedence_over_the_crash_hint(run: RunDir) -> None:
    start(run, of=4)
    report(run, "start1", "exception", 1, "w1")
    record_crash(run, 137, hint=CrashHint(kind="oom_killed", rank=0))
    assert read_json(run.failure)["class"] == "exception"


def test_attempt_that_a_second_interrupt_ended_counts_as_stopped(run: RunDir) -> None:
    start(run, of=3)
    report(run, "start1", PEER_LOST, 1, "w1")
    conclude_attempt(run, "start1", ExitCode.INTERRUPTED)
    (attempt,) = read_attempts(run)
    assert (attempt.why, attempt.last_step, attempt.concluded) == ("SIGINT", 3, True)
    assert attempt.time_end is not None
    assert not run.failure.exists()


@pytest.mark.parametrize("code", [ExitCode.INTERRUPTED, ExitCode.WRONG_INPUT])
def test_attempt_that_its_rank_0_could_not_close_has_the_recorded_cause(run: RunDir, code: ExitCode) -> None:
    start(run, of=3)
    report(run, "start1", "input", 1, "w1")
    conclude_attempt(run, "start1", code)
    (attempt,) = read_attempts(run)
    assert (attempt.why, attempt.rank, attempt.concluded) == ("input", 1, True)


def test_refused_start_without_a_line_gets_none(run: RunDir) -> None:
    report(run, "start1", "input", 0, "w1")
    conclude_attempt(run, "start1", ExitCode.WRONG_INPUT)
    assert read_attempts(run) == []
