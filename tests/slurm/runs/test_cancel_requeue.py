"""Cancelling and requeueing a run, and files of a run that must not redirect this to another job."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock

from slurm.runs import cancel_requeue
from slurm.status.rows import status
from slurm.status.submissions import intend, record
from tests.slurm.status.folders import new_run, submitted
from tests.slurm.support.fake_slurm import FakeSlurm
from toolkit.errors import SchedulerError, SlurmUnavailable, UserError
from toolkit.run.run_dir import RunDir

#: What Slurm's programs would take for something else than one job.
NO_IDS = [
    "--me",
    "-u root",
    "zzz",
    "",
    "12,13",
    "12_",
    "12_[0-3]",
    "١٢",
    "12\n",
    "0",
    "4294967295",
    "9" * 4000,
]


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return new_run(tmp_path)


def cancel(run: RunDir) -> str:
    (now,) = status([run])
    return cancel_requeue.cancel(run, now)


def test_next_job_submitted_during_the_cancellation_is_cancelled_too(run: RunDir, fake: FakeSlurm) -> None:
    """As at a time limit. The submitter may have been ended before it wrote the id down."""
    submitted(run)
    fake.add("101", state="RUNNING", work_dir=str(run.path))
    (now,) = status([run])
    intend(run, "run.1")
    fake.add("102", name="run.1", work_dir=str(run.path))
    assert cancel_requeue.cancel(run, now) == "jobs 101 and 102 cancelled"
    assert fake.calls("scancel") == [["--", "101"], ["--", "102"]]


def test_job_is_cancelled_even_while_the_next_one_is_being_submitted(
    run: RunDir, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted(run)
    fake.add("101", state="RUNNING", work_dir=str(run.path))
    monkeypatch.setattr("slurm.status.submissions._LOCK_S", 0.1)
    with FileLock(run.lock):
        told = cancel(run)
    assert told.startswith("job 101 cancelled")
    assert f"repeat stk cancel {run.run_id}" in told
    assert fake.calls("scancel") == [["--", "101"]]


def test_cancelled_job_that_was_suspended_is_said_not_to_have_saved(run: RunDir, fake: FakeSlurm) -> None:
    submitted(run)
    fake.add("101", state="SUSPENDED", work_dir=str(run.path))
    told = cancel(run)
    assert fake.calls("scancel") == [["--", "101"]]
    assert "could not save" in told
    assert f"stk resume {run.run_id}" in told


@pytest.mark.parametrize("state", ["PENDING", "RUNNING"])
def test_cancelled_run_stays_cancelled_after_slurm_has_forgotten_its_job(
    run: RunDir, fake: FakeSlurm, state: str
) -> None:
    submitted(run)
    fake.add("101", state=state, work_dir=str(run.path))
    cancel(run)
    fake.forget("101")
    (now,) = status([run])
    assert (now.state, now.is_live) == ("cancelled", False)
    assert f"stk resume {run.run_id}" in now.reason


def test_next_job_that_was_cancelled_too_stays_cancelled_when_slurm_has_forgotten_it(
    run: RunDir, fake: FakeSlurm
) -> None:
    submitted(run)
    fake.add("101", state="RUNNING", work_dir=str(run.path))
    (now,) = status([run])
    intend(run, "run.1")
    fake.add("102", name="run.1", work_dir=str(run.path))
    cancel_requeue.cancel(run, now)
    fake.forget("101", "102")
    assert status([run])[0].state == "cancelled"


def test_a_cancel_that_slurm_refuses_is_not_recorded(run: RunDir, fake: FakeSlurm) -> None:
    submitted(run)
    fake.add("101", work_dir=str(run.path))
    fake.refuses("scancel", "scancel: error: Kill job error on job id 101: Access/permission denied")
    with pytest.raises(SchedulerError):
        cancel(run)
    assert not run.events.exists()


@pytest.mark.parametrize("state", ["CANCELLED", None])
def test_run_that_continues_in_a_terminal_is_not_taken_for_its_ended_job(
    run: RunDir, fake: FakeSlurm, state: str | None
) -> None:
    """Slurm may have forgotten the job."""
    submitted(run)
    if state is not None:
        fake.add("101", state=state, work_dir=str(run.path))
    with FileLock(run.alive):
        (now,) = status([run])
        assert (now.state, now.job_id) == ("running", None)
        with pytest.raises(UserError, match="foreground"):
            cancel_requeue.cancel(run, now)
        told = cancel_requeue.requeue(run, now)
        assert all(part in told for part in ("no Slurm job", "Ctrl-C"))
    assert fake.calls("scancel") == []


def test_run_whose_processes_may_be_starting_is_not_said_to_have_ended(run: RunDir) -> None:
    assert "starting" in cancel(run)


def test_cancel_and_requeue_raise_while_slurm_does_not_answer(run: RunDir, fake: FakeSlurm) -> None:
    submitted(run)
    fake.add("101", work_dir=str(run.path))
    fake.refuses("squeue", "slurm_load_jobs error: Socket timed out on send/recv operation")
    for act in (cancel_requeue.cancel, cancel_requeue.requeue):
        with pytest.raises(SlurmUnavailable, match=run.run_id):
            act(run, status([run])[0])


@pytest.mark.parametrize("job_id", NO_IDS)
def test_invalid_job_id_reaches_no_program(run: RunDir, fake: FakeSlurm, job_id: str) -> None:
    submitted(run, job_id)
    (now,) = status([run])
    assert (now.state, now.is_live) == ("unknown", False)
    assert "names no job" in now.reason
    with pytest.raises(UserError):
        cancel_requeue.cancel(run, replace(now, is_live=True))
    assert fake.calls("scancel") == fake.calls("squeue") == fake.calls("sacct") == []


def test_the_job_of_another_run_is_left_alone(run: RunDir, fake: FakeSlurm, tmp_path: Path) -> None:
    other = new_run(tmp_path, "other-0123abcd")
    fake.add("101", state="RUNNING", work_dir=str(other.path))
    submitted(run)
    (now,) = status([run])
    assert not now.is_live
    for act in (cancel_requeue.cancel, cancel_requeue.requeue):
        with pytest.raises(UserError, match="101"):
            act(run, replace(now, is_live=True))
    assert fake.calls("scancel") == []


def test_a_process_that_is_not_the_runs_launcher_is_left_alone(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is older than the submission, as a launcher is, but starts something else."""
    signalled: list[int] = []
    monkeypatch.setattr("os.kill", lambda process, _: signalled.append(process))
    record(run, cluster="local", job_id=f"local-{os.getpid()}", name="n")
    (now,) = status([run])
    assert not now.is_live
    with pytest.raises(UserError):
        cancel_requeue.cancel(run, replace(now, is_live=True))
    assert signalled == []
