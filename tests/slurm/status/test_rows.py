"""Where runs stand: what the folder says and what the scheduler says, put together."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from slurm.client.queue import JobState, State
from slurm.status.liveness import is_launcher_alive
from slurm.status.rows import RunStatus, status
from slurm.status.submissions import Submission, record
from tests.slurm.status.folders import ended, new_run, started, submitted
from tests.slurm.support.fake_slurm import FakeSlurm
from tests.slurm.support.user import User
from toolkit.files import write_json
from toolkit.run.events import note_event
from toolkit.run.run_dir import RunDir
from toolkit.system.host import boot

RESULT = {
    "state": "finished",
    "step": 40,
    "epoch": 2.0,
    "metrics": {"train": {"loss": 0.5}, "validation": {"loss": 0.6, "accuracy": 0.75}},
}
PROGRESS = {"step": 10, "total_steps": 40, "epoch": 0.5, "metrics": {"loss": 0.7, "samples_per_s": 900.0}}
FAILURE = {
    "rank": 3, "host": "node7", "phase": "forward", "step": 9, "class": "exception",
    "message": "ValueError: no\nand more", "advice": "Think.",
}  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return new_run(tmp_path)


def state(run: RunDir) -> RunStatus:
    (row,) = status([run])
    return row


# -- with a scheduler ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "facts, expected, reason",
    [
        ({"state": "PENDING", "reason": "Priority"}, "pending", "Priority"),
        ({"state": "RUNNING", "reason": "None"}, "running", ""),
        ({"state": "PENDING", "reason": "BeginTime", "restarts": "1"}, "requeued", "BeginTime"),
        ({"state": "PREEMPTED", "reason": "None"}, "failed", "stk resume continues the run"),
        ({"state": "REQUEUE_HOLD", "reason": "None"}, "held", "scontrol release 101"),
        ({"state": "PENDING", "reason": "JobHeldUser"}, "held", "JobHeldUser): scontrol release 101"),
        ({"state": "PENDING", "reason": "PartitionTimeLimit"}, "pending", "PartitionTimeLimit: the time"),
        ({"state": "CANCELLED", "reason": "None"}, "cancelled", ""),
        ({"state": "FAILED", "reason": "NonZeroExitCode"}, "failed", "NonZeroExitCode"),
    ],
)
def test_state_and_reason_of_a_run_come_from_slurm(
    fake: FakeSlurm, run: RunDir, facts: dict[str, str], expected: str, reason: str
) -> None:
    submitted(run)
    fake.add("101", **facts)
    row = state(run)
    assert (row.state, row.job_id) == (expected, "101")
    assert reason in row.reason
    assert bool(row.reason) == bool(reason)
    assert row.is_live == (expected in ("pending", "running", "requeued", "held"))


@pytest.fixture(params=["101", "101_3"], ids=["job", "task"])
def own_job(request: pytest.FixtureRequest, fake: FakeSlurm, tmp_path: Path) -> RunDir:
    """A run with a running job, which works in the run's folder, or beside a link to it."""
    (tmp_path / "first").mkdir()
    run = new_run(tmp_path / "first")
    submitted(run, request.param)
    (tmp_path / "first" / "3").symlink_to(run.path.name)
    place = run.path if request.param == "101" else run.path.parent
    fake.add(request.param, state="RUNNING", name=f"{run.run_id}.0", work_dir=str(place))
    return run


def test_a_strangers_job_with_the_same_number_is_not_the_runs(
    own_job: RunDir, fake: FakeSlurm, tmp_path: Path
) -> None:
    """The controller began its numbers again."""
    assert state(own_job).is_live
    fake.change(fake.jobs[0]["job_id"], name="theirs", work_dir=str(tmp_path))
    assert (state(own_job).state, state(own_job).is_live) == ("unknown", False)


def test_the_job_of_a_run_is_not_that_of_its_copy(own_job: RunDir, tmp_path: Path) -> None:
    shutil.copytree(own_job.path.parent, tmp_path / "copy", symlinks=True)
    copy = RunDir(tmp_path / "copy" / own_job.run_id)
    assert [row.is_live for row in status([own_job, copy])] == [True, False]


def test_a_run_that_was_moved_or_is_reached_by_a_link_has_its_job(own_job: RunDir, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("first")
    assert state(RunDir(tmp_path / "link" / own_job.run_id)).state == "running"
    own_job.path.parent.rename(tmp_path / "moved")
    assert state(RunDir(tmp_path / "moved" / own_job.run_id)).state == "running"


def test_the_users_own_batch_script_may_work_anywhere(run: RunDir, fake: FakeSlurm, tmp_path: Path) -> None:
    submitted(run, is_script=True)
    fake.add("101", state="RUNNING", name="mine.sh", work_dir=str(tmp_path))
    assert state(run).state == "running"


@pytest.mark.parametrize("slurm_state", ["RUNNING", "FAILED", "CANCELLED", "PENDING"])
def test_result_overrides_the_state_in_slurm(fake: FakeSlurm, run: RunDir, slurm_state: str) -> None:
    submitted(run)
    fake.add("101", state=slurm_state)
    write_json(run.result, RESULT)
    assert state(run).state == "finished"


@pytest.mark.parametrize("name, expected", [("tiny-0123abcd.0", "failed"), ("theirs", "cancelled")])
def test_job_that_accounting_has_under_another_name_is_not_the_runs(
    run: RunDir, name: str, expected: str
) -> None:
    """A controller that has lost its state begins its numbers again."""
    submitted(run)
    started(run)
    ended(run, why="time_limit")
    job = JobState(state="failed", slurm_state="OUT_OF_MEMORY", name=name)
    (row,) = status([run], ask=lambda ids: dict.fromkeys(ids, job))
    assert row.state == expected


@pytest.mark.parametrize("state", ["finished", "unknown"])
def test_run_that_finishes_while_slurm_is_asked_has_finished(run: RunDir, state: State) -> None:
    submitted(run)
    started(run)

    def finish_and_answer(ids: Iterable[str]) -> dict[str, JobState]:
        write_json(run.result, RESULT)
        return dict.fromkeys(ids, JobState(state=state))

    (row,) = status([run], ask=finish_and_answer)
    assert (row.state, row.step) == ("finished", 40)


def test_next_job_that_is_submitted_while_slurm_is_asked_has_not_ended(run: RunDir) -> None:
    submitted(run)

    def chain_and_answer(ids: Iterable[str]) -> dict[str, JobState]:
        answer = dict.fromkeys(ids, JobState(state="failed", slurm_state="TIMEOUT"))
        submitted(run, "102")
        return answer

    (row,) = status([run], ask=chain_and_answer)
    assert (row.job_id, row.state) == ("102", "pending")


def test_failure_of_an_earlier_attempt_does_not_hide_a_requeued_job(fake: FakeSlurm, run: RunDir) -> None:
    submitted(run)
    fake.add("101", state="PENDING", reason="BeginTime", restarts="1")
    write_json(run.failure, FAILURE)
    assert state(run).state == "requeued"


def test_stopped_run_is_unknown_without_a_controller(fake: FakeSlurm, run: RunDir) -> None:
    """The run saved and left: it may be back in the queue by now."""
    submitted(run)
    started(run)
    ended(run)
    fake.goes_away()
    row = state(run)
    assert row.state == "unknown"
    assert row.reason == "Slurm cannot be asked about the job: no controller answers"


def test_without_a_controller_a_result_and_a_failure_still_count(
    fake: FakeSlurm, run: RunDir, tmp_path: Path
) -> None:
    submitted(run)
    write_json(run.result, RESULT)
    other = new_run(tmp_path, "tiny-2")
    submitted(other, "102")
    write_json(other.failure, FAILURE)
    fake.goes_away()
    assert [row.state for row in status([run, other])] == ["finished", "failed"]


def test_many_runs_cost_at_most_two_calls(fake: FakeSlurm, tmp_path: Path) -> None:
    runs = [new_run(tmp_path, f"tiny-{number}") for number in range(50)]
    for number, each in enumerate(runs):
        submitted(each, str(200 + number))
        if number % 2:
            fake.add(str(200 + number), state="RUNNING")
    rows = status(runs)
    assert [row.state for row in rows] == ["unknown", "running"] * 25
    assert len(fake.calls("squeue")) + len(fake.calls("sacct")) <= 2


def test_run_that_slurm_never_had_costs_no_call(fake: FakeSlurm, run: RunDir) -> None:
    state(run)
    assert [fake.calls(name) for name in ("scontrol", "squeue", "sacct")] == [[], [], []]


# -- on this machine -----------------------------------------------------------------------------


def test_failed_save_of_a_live_run_is_named_until_the_next_one(run: RunDir) -> None:
    started(run)
    note_event(run, "save_failed", step=6, reason=f"{run.checkpoint(6)}: No space left on device")
    with FileLock(run.alive):
        assert state(run).reason == "its save of step 6 failed: No space left on device"
        note_event(run, "save", step=9)
        assert state(run).reason == ""


@pytest.mark.parametrize("saved, hint", [(False, "it has saved nothing"), (True, "")])
def test_live_attempt_that_saved_ends_the_hint_on_missing_saves(run: RunDir, saved: bool, hint: str) -> None:
    started(run, saved=False)
    ended(run)
    started(run, 2, saved=saved)
    with FileLock(run.alive):
        assert state(run).reason.partition(",")[0] == hint


@pytest.mark.parametrize("name, is_told", [("step_1", False), ("model.pt", False), (".step_1.tmp", True)])
def test_save_that_a_killed_attempt_has_not_recorded_ends_the_hint(
    run: RunDir, name: str, is_told: bool
) -> None:
    started(run, saved=False)
    ended(run)
    (run.checkpoints / name).mkdir(parents=True)
    started(run, 2, saved=False)
    with FileLock(run.alive):
        assert bool(state(run).reason) == is_told


def local(pid: int, **facts: Any) -> Submission:
    given = {"cluster": "local", "job_id": f"local-{pid}", "host": socket.gethostname(), "name": "n"}
    return Submission(**{**given, "time": time.time(), **facts})


@contextmanager
def launching(run: RunDir, *awaits: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process with the command line of a run's launcher, that waits for the end of its input."""
    words = ["-m", *awaits, "toolkit.launch", str(run.path), "1"]
    # Right after Popen the kernel may not show its command line yet.
    code = "import sys; print(flush=True); sys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-IS", "-c", code, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        process.stdout.readline()
        yield process
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait()


def test_a_launcher_lives_as_long_as_its_process(run: RunDir) -> None:
    with launching(run) as process:
        assert is_launcher_alive(run, local(process.pid))
        process.stdin.close()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not is_launcher_alive(run, local(process.pid)), "a zombie is dead"
    assert not is_launcher_alive(run, local(process.pid))


@pytest.mark.parametrize(
    "facts, is_alive",
    [
        pytest.param({"time": 1.0}, True, id="the clock was set forward"),
        pytest.param({"host": "elsewhere"}, False, id="on another host"),
        pytest.param({"host": "earlier-name", "boot": boot()}, True, id="its host got another name"),
    ],
)
def test_a_launcher_is_found_on_its_host_whatever_the_clock_says(
    run: RunDir, facts: dict[str, Any], is_alive: bool
) -> None:
    with launching(run) as process:
        assert is_launcher_alive(run, local(process.pid, **facts)) == is_alive


def test_a_launcher_is_found_through_a_link_and_from_a_deleted_folder(
    run: RunDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = RunDir(run.path.with_name("link"))
    link.path.symlink_to(run.path)
    gone = tmp_path / "gone"
    gone.mkdir()
    with launching(link) as process:
        monkeypatch.chdir(gone)
        gone.rmdir()
        assert is_launcher_alive(run, local(process.pid))


def test_a_process_that_launches_something_else_is_not_the_launcher(run: RunDir) -> None:
    another = RunDir(run.path.with_name("another"))
    with launching(another, "slurm.submission.follow", str(run.path), str(another.path)) as process:
        assert not is_launcher_alive(run, local(process.pid))
        assert is_launcher_alive(another, local(process.pid))
    assert not is_launcher_alive(run, local(os.getpid()))


@pytest.mark.parametrize("job_id", ["local--1", "local-0", "local-", "local-1e3", "local-" + "9" * 5000])
def test_invalid_process_id_is_not_a_launcher(run: RunDir, job_id: str) -> None:
    assert not is_launcher_alive(run, local(1, job_id=job_id))


def test_run_with_a_launcher_but_no_ranks_is_pending(run: RunDir) -> None:
    with launching(run) as process:
        record(run, cluster="local", job_id=f"local-{process.pid}", name="n")
        row = state(run)
    assert (row.state, row.reason) == ("pending", "the processes are starting")


def test_run_whose_launcher_outlives_its_attempt_is_ending_unless_it_starts_again(run: RunDir) -> None:
    with launching(run) as process:
        record(run, cluster="local", job_id=f"local-{process.pid}", name="n")
        started(run, time_start=time.time())
        assert (state(run).state, state(run).doing) == ("running", "ending")
        ended(run, why="killed", concluded=True)
        write_json(run.failure, {"class": "killed", "message": "", "rank": 0, "host": "c1", "time": 1.0})
        assert (state(run).state, state(run).doing) == ("running", "ending")
        run.failure.unlink()
        assert (state(run).state, state(run).doing) == ("pending", "starting")


def test_reason_of_the_last_attempt_is_shown_after_a_killed_one(run: RunDir) -> None:
    started(run, 1)
    started(run, 2)
    assert state(run).state == "unknown"
    ended(run, 2, "SIGINT")
    row = state(run)
    assert (row.state, row.restarts) == ("cancelled", 1)
    assert "stopped by SIGINT" in row.reason


def test_run_that_was_never_started_is_unknown(run: RunDir) -> None:
    row = state(run)
    assert (row.state, row.job_id, row.step, row.total_steps, row.restarts) == ("unknown", None, 0, None, 0)
    assert "ended" not in row.reason


# -- numbers -------------------------------------------------------------------------------------


def test_a_live_run_shows_its_progress(fake: FakeSlurm, run: RunDir) -> None:
    submitted(run)
    fake.add("101", state="RUNNING")
    write_json(run.progress, PROGRESS)
    row = state(run)
    assert (row.step, row.total_steps, row.epoch) == (10, 40, 0.5)
    assert row.metrics == {"loss": 0.7, "samples_per_s": 900.0}


def test_a_run_shows_the_last_step_of_an_ended_attempt_that_wrote_no_progress(run: RunDir) -> None:
    write_json(run.progress, PROGRESS)
    started(run)
    ended(run, why="not_finite", last_step=12)
    row = state(run)
    assert (row.step, row.total_steps, row.percent) == (12, 40, 30.0)
    # The next attempt has failed before its first step.
    started(run, 2)
    ended(run, 2, why="exception", last_step=0)
    assert state(run).step == 10


def test_a_finished_run_shows_its_result(run: RunDir) -> None:
    write_json(run.progress, PROGRESS)
    write_json(run.result, RESULT)
    row = state(run)
    assert (row.step, row.total_steps, row.epoch) == (40, 40, 2.0)
    assert row.metrics == {"train_loss": 0.5, "validation_loss": 0.6, "validation_accuracy": 0.75}


# -- the command ---------------------------------------------------------------------------------


def test_json_has_the_agreed_keys(user: User, fake: FakeSlurm) -> None:
    user.stk("submit", user.config)
    (row,) = json.loads(user.stk("status", "--json").out)
    agreed = {
        "run_id": user.run().run_id,
        "run_dir": str(user.run().path),
        "job_id": "101",
        "state": "pending",
        "step": 0,
        "total_steps": None,
        "epoch": None,
        "restarts": 0,
        "metrics": {},
        "reason": "Priority",
    }
    assert list(row)[: len(agreed)] == list(agreed)
    assert {key: row[key] for key in agreed} == agreed
    assert row["doing"] == "waiting for hosts (Priority)"


def test_no_runs_are_no_error(user: User) -> None:
    answer = user.stk("status")
    assert (answer.code, answer.err) == (0, "")
    assert f"no runs under {user.experiments}" in answer.out
    assert json.loads(user.stk("status", "--json").out) == []


def test_run_can_be_selected_by_folder_id_or_prefix(user: User, fake: FakeSlurm) -> None:
    user.stk("submit", user.config)
    user.stk("submit", user.config, "name=other")
    run = user.run()
    for name in (run.path, run.run_id, "tin", f"experiments/{run.run_id}"):
        (row,) = json.loads(user.stk("status", name, "--json").out)
        assert row["run_id"] == run.run_id
    rows = json.loads(user.stk("status", "tiny", "--json", "other").out)
    assert [row["run_id"][:4] for row in rows] == ["tiny", "othe"]


@pytest.mark.parametrize("job", ["PENDING", "RUNNING", "CANCELLED"])
def test_a_lost_host_takes_no_gpu_hours_until_the_next_job_begins(
    run: RunDir, fake: FakeSlurm, job: str
) -> None:
    begun = time.time() - 72 * 3600
    started(run, device="cuda", time_start=begun)
    write_json(run.progress, {**PROGRESS, "time": begun + 3600})
    submitted(run, "102")
    fake.add("102", state=job, name=f"{run.run_id}.0", work_dir=str(run.path))
    assert state(run).gpu_hours == pytest.approx(2)
