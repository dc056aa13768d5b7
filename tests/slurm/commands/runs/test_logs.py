"""`stk logs` on folders as runs leave them."""

from __future__ import annotations

import json
import shutil
import time

import pytest

from slurm.status.submissions import record
from tests.slurm.runs.logs.folder import Logged
from tests.slurm.support.user import User
from toolkit.run.events import note_event


@pytest.fixture
def logged(user: User) -> Logged:
    """A run with two attempts of two ranks, of which neither has recorded a failure."""
    logged = Logged(user.experiments)
    logged.start("101.0.0", "a0\n", "a1\n", job_id="101", why="preempted")
    logged.hosts("101.0.0", "w1", "w2")
    logged.start("101.0.1", "b0\n", "b1\n", job_id="101", restart=1)
    (logged.run.logs / "101.batch.log").write_text("stk: starting again\n")
    return logged


def test_log_of_rank_0_of_the_newest_attempt_is_shown_unchanged(user: User, logged: Logged) -> None:
    assert user.stk("logs", "tiny-1").out == "b0\n"
    assert user.stk("logs", "tiny-1", "--rank", 1).out == "b1\n"


def test_attempt_can_be_selected(user: User, logged: Logged) -> None:
    assert user.stk("logs", "tiny-1", "--attempt", 1, "--rank", 1).out == "a1\n"
    assert "there are: 1, 2" in user.refused("logs", "tiny-1", "--attempt", 9)


def test_several_logs_have_headings(user: User, logged: Logged) -> None:
    assert user.stk("logs", "tiny-1", "--attempt", "all").out.splitlines() == [
        "==> attempt 1, job 101: rank 0 on w1 <==",
        "a0",
        "",
        "==> attempt 2, job 101: rank 0 <==",
        "b0",
    ]
    assert "==> attempt 2, job 101: rank 1 <==\nb1\n" in user.stk("logs", "tiny-1", "--rank", "all").out


def test_log_of_the_batch_script_is_shown(user: User, logged: Logged) -> None:
    for attempt in ([], ["--attempt", 1]):
        assert user.stk("logs", "tiny-1", "--rank", "batch", *attempt).out == "stk: starting again\n"


def test_all_ranks_are_merged_by_time(user: User, logged: Logged) -> None:
    times = [f"2026-01-01 00:00:0{second},000" for second in (1, 2, 3)]
    logged.start("c", f"{times[0]} x\n{times[2]} z\n", f"{times[1]} y\nraw\n")
    lines = user.stk("logs", "tiny-1", "--merge").out.splitlines()
    assert lines == [
        f"rank 0 | {times[0]} x", f"rank 1 | {times[1]} y", "rank 1 | raw", f"rank 0 | {times[2]} z",
    ]  # fmt: skip
    assert user.stk("logs", "tiny-1", "--merge", "--lines", 2).out.splitlines() == lines[-2:]


def test_several_attempts_are_merged_by_time_and_labelled(user: User, logged: Logged) -> None:
    lines = user.stk("logs", "tiny-1", "--merge", "--attempt", "all").out.splitlines()
    assert lines == [
        "attempt 1, job 101, rank 0 | a0",
        "attempt 1, job 101, rank 1 | a1",
        "attempt 2, job 101, rank 0 | b0",
        "attempt 2, job 101, rank 1 | b1",
    ]


def test_failure_is_shown_with_the_log_of_the_rank_that_failed_first(user: User, logged: Logged) -> None:
    gpu = {"index": 3, "name": "NVIDIA H200", "uuid": "GPU-12"}
    logged.fail("101.0.1", 1, "CUDA out of memory", gpu=gpu)
    answer = user.stk("logs", "tiny-1")
    assert answer.out.splitlines() == [
        "error: CUDA out of memory",
        "  where        rank 1 on w1, GPU 3 (NVIDIA H200, GPU-12), in forward, after step 7",
        "  class        exception",
        "  what to do   The end of its log (stk logs) has the error; a traceback there names the line.",
        "",
        "b1",
    ]
    assert answer.err == "(rank 1 failed first; --rank 0 shows rank 0, --rank all shows all)\n"


def test_rank_that_failed_first_is_shown_first(user: User, logged: Logged) -> None:
    logged.fail("101.0.1", 1)
    headings = [
        line for line in user.stk("logs", "tiny-1", "--rank", "all").out.splitlines() if "==>" in line
    ]
    assert [line.split(": ")[1][:6] for line in headings] == ["rank 1", "rank 0"]


def test_failure_of_an_earlier_attempt_is_shown_only_with_that_attempt(user: User, logged: Logged) -> None:
    logged.fail("101.0.0", 0, "of the first")
    logged.run.failure.unlink()
    assert "of the first" not in user.stk("logs", "tiny-1").out
    assert user.stk("logs", "tiny-1", "--attempt", 1).out.startswith("error: of the first\n")


def test_failure_without_a_log_is_still_shown(user: User, logged: Logged) -> None:
    for path in logged.run.logs.iterdir():
        path.unlink()
    logged.fail("101.0.1", 0)
    answer = user.stk("logs", "tiny-1")
    assert (answer.code, answer.out.startswith("error: boom"), "no log" in answer.err) == (0, True, True)


@pytest.mark.parametrize("texts", [(), ("",)], ids=["no log", "an empty log"])
def test_run_without_a_log_shows_why_it_was_not_started_again(user: User, texts: tuple[str, ...]) -> None:
    """As a job that found the disk full leaves it."""
    run = Logged(user.experiments, "full-1").run
    for rank, text in enumerate(texts):
        run.log("101.0.0", rank).write_text(text)
    note_event(run, "not_requeued", job_id="101", why="failure.json cannot be written")
    record(run, cluster="slurm", job_id="101", name="n")
    assert "failure.json cannot be written" in user.stk("logs", "full-1").out
    record(run, cluster="slurm", job_id="102", name="n")
    assert "failure.json" not in user.stk("logs", "full-1").out


def test_requeued_job_without_a_log_shows_no_reason_of_its_earlier_start(user: User) -> None:
    logged = Logged(user.experiments)
    record(logged.run, cluster="slurm", job_id="101", name="n")
    note_event(logged.run, "requeue_failed", job_id="101", reason="no controller answers")
    logged.start("101.1.0", "", job_id="101", restart=1, time_start=time.time() + 1)
    assert user.stk("logs", "tiny-1").out == ""


def test_failure_option_shows_only_the_failure_with_its_traceback(user: User, logged: Logged) -> None:
    assert "no failure is recorded" in user.stk("logs", "tiny-1", "--failure").out
    assert "preempted" in user.stk("logs", "tiny-1", "--failure", "--attempt", "1").out
    assert json.loads(user.stk("logs", "tiny-1", "--failure", "--json").out) is None
    logged.fail("101.0.1", 1)
    assert user.stk("logs", "tiny-1", "--failure").out.endswith("\n\nTraceback: boom\n")
    assert json.loads(user.stk("logs", "tiny-1", "--failure", "--json").out)["rank"] == 1


def test_a_damaged_failure_is_named(user: User, logged: Logged) -> None:
    logged.run.failure.write_text("{")
    answer = user.stk("logs", "tiny-1")
    assert (answer.code, "failure.json cannot be read" in answer.err) == (4, True)
    assert "Traceback" not in answer.err


def test_list_shows_ranks_and_hosts_of_each_attempt(user: User, logged: Logged) -> None:
    logged.start("dead", why="launch")
    rows = [line.split() for line in user.stk("logs", "tiny-1", "--list").out.splitlines()]
    assert rows[0][:4] == ["attempt", "job", "ranks", "hosts"]
    assert rows[1][:6] == ["1", "101", "0-1", "w1,", "w2", "6"]
    assert rows[1][-1] == "preempted"
    assert rows[3][2:4] == ["no", "log"]
    assert rows[4][:2] == ["batch", "101.batch.log"]


def test_the_list_in_json_has_an_entry_for_each_log(user: User, logged: Logged) -> None:
    entries = json.loads(user.stk("logs", "tiny-1", "--list", "--json").out)
    assert [(each["attempt"], each["rank"], each["bytes"]) for each in entries] == [
        (1, 0, 3), (1, 1, 3), (2, 0, 3), (2, 1, 3), (None, "batch", 20),
    ]  # fmt: skip
    assert entries[1].keys() >= {"nonce", "host", "first_time", "last_time", "why", "path", "job_id"}
    assert (entries[1]["host"], entries[1]["why"]) == ("w2", "preempted")


@pytest.mark.parametrize(
    "arguments, complaint",
    [
        (["--json"], "--json goes with --list or --failure"),
        (["--merge", "--rank", "1"], "leave one out"),
        (["--list", "-f"], "does not go with --list"),
        (["--rank", "x"], "'x' is not a rank, all or batch"),
        (["--attempt", "0"], "'0' is not the number of an attempt"),
        (["--rank", "7"], "no log of rank 7 yet"),
    ],
)
def test_invalid_arguments_are_refused(
    user: User, logged: Logged, arguments: list[str], complaint: str
) -> None:
    assert complaint in user.refused("logs", "tiny-1", *arguments)


def test_a_folder_that_cannot_be_read_is_named(user: User, logged: Logged) -> None:
    shutil.rmtree(logged.run.logs)
    # It leads to itself, which even root cannot follow.
    logged.run.logs.symlink_to(logged.run.logs.name)
    answer = user.stk("logs", "tiny-1")
    assert (answer.code, str(logged.run.logs) in answer.err) == (2, True)
