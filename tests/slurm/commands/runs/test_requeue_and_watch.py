"""stk requeue and stk watch, with a pretend Slurm."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.slurm.support.pretend_job import PretendJob
from tests.support.patience import PATIENCE_S
from toolkit.files import read_json_lines, write_json
from toolkit.run.failure.classes import NO_PROGRESS

SLEEP = "slurm.commands.runs.watch.sleep"

RELEASE = ["update", "jobid=101", "starttime=now+5"]


def waits(job: PretendJob, reason: str = "BeginTime", restarts: str = "1") -> None:
    job.fake.change("101", state="PENDING", reason=reason, restarts=restarts)


# ---- requeue


def test_requeue_asks_a_running_job_to_save(job: PretendJob) -> None:
    job.fake.has_steps("101.batch", "101.0")
    assert "asked to save" in job.user.told("requeue", job.run.run_id)
    assert job.fake.calls("scancel") == [["--signal=USR2", "--", "101"]]
    (event,) = job.events("requeue_requested")
    assert event["job_id"] == "101"


def test_running_job_without_ranks_is_requeued_by_slurm(job: PretendJob) -> None:
    """The job executes the lines of `setup`. It has no ranks that could save."""
    job.fake.has_steps("101.batch", "101.extern")
    assert "asked to save" not in job.user.told("requeue", job.run.run_id)
    assert (job.requeues, job.fake.calls("scancel"), job.events("requeue_requested")) == (
        [["requeue", "101"]],
        [],
        [],
    )


def test_job_whose_ranks_have_just_ended_is_not_requeued_by_slurm(job: PretendJob) -> None:
    """The run may be over, and Slurm would start the job again."""
    job.fake.change("101", state="COMPLETING")
    job.user.told("requeue", job.run.run_id)
    assert job.requeues == []


def test_requeue_of_a_suspended_job_is_refused_before_it_is_recorded(job: PretendJob) -> None:
    """Slurm never answers a signal to such a job."""
    job.fake.change("101", state="SUSPENDED")
    assert f"stk cancel {job.run.run_id}" in job.user.refused("requeue", job.run.run_id)
    assert (job.fake.calls("scancel"), job.events("requeue_requested")) == ([], [])


def test_requeue_releases_a_job_that_waits_for_its_begin_time(job: PretendJob) -> None:
    waits(job)
    assert "may start" in job.user.stk("requeue", job.run.run_id).out
    assert RELEASE in job.fake.calls("scontrol")
    assert job.fake.calls("scancel") == []


@pytest.mark.parametrize("reason, restarts", [("Resources", "1"), ("BeginTime", "0")])
def test_requeue_does_not_release_a_job_that_waits_for_resources_or_for_the_time_of_its_user(
    job: PretendJob, reason: str, restarts: str
) -> None:
    waits(job, reason, restarts)
    assert f"is already waiting ({reason})" in job.user.stk("requeue", job.run.run_id).out
    assert RELEASE not in job.fake.calls("scontrol")


def test_requeue_of_an_ended_run_points_to_stk_resume(job: PretendJob) -> None:
    job.fake.change("101", state="CANCELLED")
    answer = job.user.stk("requeue", job.run.run_id)
    assert f"not live (cancelled): stk resume {job.run.run_id}" in answer.out


def test_a_run_that_made_no_progress_is_held_and_may_be_resumed(job: PretendJob) -> None:
    job.starts(time_end=1.0, last_step=0, why="killed")
    job.failure(NO_PROGRESS)
    job.fake.change("101", state="FAILED")
    (row,) = job.user.stk("status").out.splitlines()[1:2]
    assert "held" in row
    answer = job.user.stk("requeue", job.run.run_id)
    assert f"not live (held): stk resume {job.run.run_id}" in answer.out
    assert job.user.stk("resume", job.run.run_id).code == 0
    assert job.submitted == ["101", "102"]
    assert [line["event"] for line in read_json_lines(job.run.events)].count("released") == 1


def test_a_job_that_slurm_holds_is_live(job: PretendJob) -> None:
    waits(job, "JobHeldUser")
    assert "is held, job 101" in job.user.refused("submit", job.user.config)


# ---- watch


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scheduler is asked at every look."""
    monkeypatch.setattr("slurm.runs.watching.polling.PER_QUESTION_S", 0.0)


def watch(job: PretendJob, *arguments: str) -> list[str]:
    return job.user.told("watch", "--until-finished", "--interval", "0.01", *arguments).splitlines()


def after_looks(monkeypatch: pytest.MonkeyPatch, count: int, happen: Callable[[], object]) -> None:
    """Let something happen after so many pauses of `stk watch`, and after each later one."""
    rounds = iter(range(count))
    monkeypatch.setattr(SLEEP, lambda _: next(rounds, None) is None and happen())


def test_watch_prints_no_control_characters_of_a_message(job: PretendJob) -> None:
    job.fake.change("101", state="FAILED")
    write_json(job.run.failure, {"class": "exception", "rank": 0, "host": "h", "message": "a\x1b[2Jb"})
    (line,) = watch(job)
    assert f"{job.run.run_id} failed" in line
    assert "rank 0 on h: a" in line
    assert "\x1b" not in line


@pytest.mark.usefixtures("eager")
def test_watch_shows_each_change_once_and_releases_a_requeued_job(
    job: PretendJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look finds another state of the job; a look costs one question about all jobs."""

    def looks() -> Iterator[None]:
        yield  # it runs, still
        waits(job)
        yield
        job.fake.change("101", state="COMPLETING", reason="")
        yield
        job.fake.change("101", state="CANCELLED")
        yield

    steps = looks()
    monkeypatch.setattr(SLEEP, lambda _: next(steps))
    lines = [line.split(" ", 2)[2] for line in watch(job, job.run.run_id)]
    assert [line.split(" ")[0] for line in lines] == ["running", "requeued", "running", "cancelled"]
    assert job.fake.calls("scontrol").count(RELEASE) == 1
    assert len(job.fake.calls("squeue")) == 5


@pytest.mark.usefixtures("eager")
def test_watch_shows_each_change_of_two_folders_with_one_name_once(
    job: PretendJob, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    copy = shutil.copytree(job.run.path, tmp_path / "copy" / job.run.run_id)
    write_json(copy / "result.json", {"state": "finished", "step": 3, "metrics": {}})
    after_looks(monkeypatch, 3, lambda: job.fake.change("101", state="CANCELLED"))
    states = [line.split(" ")[2] for line in watch(job, str(job.run.path), str(copy))]
    assert states == ["running", "finished", "cancelled"]


@pytest.mark.usefixtures("eager")
def test_watch_releases_a_job_only_once(job: PretendJob, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking again would move its start."""
    waits(job)
    after_looks(monkeypatch, 3, lambda: job.fake.change("101", state="CANCELLED"))
    watch(job)
    assert job.fake.calls("scontrol").count(RELEASE) == 1


@pytest.mark.usefixtures("eager")
def test_watch_retries_a_refused_release(job: PretendJob, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it is completing Slurm refuses, or takes it and forgets it."""
    waits(job)
    job.fake.refuses_to(" ".join(RELEASE), "slurm_update error: Job is no longer pending execution")
    after_looks(monkeypatch, 2, lambda: job.fake.change("101", state="CANCELLED"))
    watch(job)
    assert job.fake.calls("scontrol").count(RELEASE) == 3


def test_many_looks_ask_slurm_once_and_release_no_job_twice(
    job: PretendJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first answer says that the job waits; the folder says when the run has finished."""
    waits(job)
    job.fake.refuses_to(" ".join(RELEASE), "slurm_update error: Job is no longer pending execution")
    after_looks(monkeypatch, 50, lambda: write_json(job.run.result, {"step": 8}))
    lines = watch(job)
    assert [line.split(" ")[2] for line in lines] == ["requeued", "finished"]
    assert (len(job.fake.calls("squeue")), len(job.fake.calls("sacct"))) == (1, 0)
    assert job.fake.calls("scontrol") == [RELEASE]


def test_ctrl_c_ends_watch_without_an_error(job: PretendJob) -> None:
    process = job.user.start("watch", "--interval", "60")
    try:
        assert "running" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    assert (process.returncode, errors) == (0, "")


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "soon"])
def test_an_interval_that_is_no_span_of_time_is_refused(job: PretendJob, seconds: str) -> None:
    said = job.user.refused("watch", f"--interval={seconds}", "--until-finished")
    assert "a number of seconds, above 0" in said
