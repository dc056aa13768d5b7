"""Why a job was stopped: what Slurm says, as recorded on a real cluster (22.05), and what the process saw."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from slurm.client.stop_reason import (
    StopEvidence,
    classify_stop,
    end_of,
    is_back,
    is_preempted,
    job_target,
    length_s,
    restarts_before,
)

START = datetime(2026, 1, 1, 12, 0, 0)


def at(seconds: float) -> str:
    """A time as Slurm prints it, so long after the job's start."""
    return (START + timedelta(seconds=seconds)).isoformat(timespec="seconds")


def record(**changes: str | None) -> dict[str, str]:
    """What `scontrol show job` says of a job of five minutes that runs undisturbed."""
    facts: dict[str, str | None] = {
        "JobState": "RUNNING",
        "Reason": "None",
        "Restarts": "0",
        "TimeLimit": "00:05:00",
        "StartTime": at(0),
        "EndTime": at(300),
        "PreemptTime": "None",
    }
    return {name: value for name, value in (facts | changes).items() if value is not None}


def after(seconds: float) -> float:
    return (START + timedelta(seconds=seconds)).timestamp()


GRACE = record(PreemptTime=at(4), EndTime=at(14))
NO_GRACE = record(JobState="COMPLETING", Restarts="1", PreemptTime=None)
CANCELLED_LONG_AGO = record(JobState="CANCELLED", EndTime=at(4))
CANCELLED = record(JobState="COMPLETING", EndTime=at(4), PreemptTime=None)
CANCELLED_IN_GRACE = record(JobState="COMPLETING", PreemptTime=at(4), EndTime=at(9))
ENDED_BY_PREEMPTION = record(JobState="COMPLETING", Requeue="0", PreemptTime=at(14), EndTime=at(14))
SCRIPT_KILLED = record(JobState="COMPLETING", Reason="JobLaunchFailure", EndTime=at(4), PreemptTime=None)
RUN_OUT = record(JobState="COMPLETING", Reason="TimeLimit", EndTime=at(301), PreemptTime=None)
REQUEUED = record(JobState="COMPLETING", Restarts="1", EndTime="Unknown", StartTime="Unknown")


@pytest.mark.parametrize(
    "job, reason, now, why",
    [
        pytest.param(GRACE, "SIGTERM", 4, "preempted", id="stock preemption with grace"),
        pytest.param(GRACE, "SIGUSR2", 4, "preempted", id="preemption with the user's signal"),
        pytest.param(GRACE, None, 4, "preempted", id="the signal reached another rank"),
        pytest.param(NO_GRACE, "SIGTERM", 4, "requested", id="without grace only the restart is left to see"),
        pytest.param(REQUEUED, "SIGTERM", 4, "requested", id="scontrol requeue"),
        pytest.param(ENDED_BY_PREEMPTION, "SIGTERM", 14, "preempted", id="preemption without requeueing"),
        pytest.param(CANCELLED_IN_GRACE, "SIGTERM", 9, "cancelled", id="scancel in the grace period"),
        pytest.param(CANCELLED, "SIGTERM", 4, "cancelled", id="scancel"),
        pytest.param(CANCELLED, "SIGUSR2", 4, "cancelled", id="scancel after a warning"),
        pytest.param(CANCELLED, "time_limit", 290, "cancelled", id="scancel during the save at the limit"),
        pytest.param(SCRIPT_KILLED, "SIGTERM", 4, "requested", id="the batch script was killed"),
        pytest.param(CANCELLED_LONG_AGO, "SIGTERM", 4, "cancelled", id="scancel, seen late"),
        pytest.param(RUN_OUT, "SIGTERM", 301, "time_limit", id="the limit was reached"),
        pytest.param(record(JobState="TIMEOUT"), "SIGTERM", 301, "time_limit", id="and the job is gone"),
        pytest.param({**RUN_OUT, "Reason": "None"}, None, 301, "time_limit", id="without a reason given"),
        pytest.param(record(), "time_limit", 290, "time_limit", id="the worker's own clock"),
        pytest.param(record(), "SIGUSR2", 220, "time_limit", id="the warning, half a minute early"),
        pytest.param(record(), "SIGUSR2", 20, "requested", id="the same signal far from the end"),
        pytest.param(record(EndTime="Unknown"), "SIGUSR2", 220, "requested", id="a job without a limit"),
        pytest.param(record(), "SIGTERM", 20, "requested", id="Slurm knows of nothing"),
        pytest.param(record(), None, 20, "requested", id="no reason is recorded"),
        pytest.param(record(), "saved", 20, "saved", id="a command left by itself"),
        pytest.param(REQUEUED, "saved", 4, "requested", id="a command left during scontrol requeue"),
        pytest.param(CANCELLED, "saved", 4, "cancelled", id="a command left during scancel"),
    ],
)
def test_slurm_and_the_signal_tell_why(job: dict[str, str], reason: str | None, now: float, why: str) -> None:
    assert classify_stop(job, StopEvidence(reason=reason, signal_s=30), after(now)) == why


def test_near_the_end_the_recorded_request_distinguishes_requeue_from_warning() -> None:
    for requested, why in ((False, "time_limit"), (True, "requested")):
        seen = StopEvidence(reason="SIGUSR2", signal_s=30, requested=requested)
        assert classify_stop(record(), seen, after(250)) == why


def test_preemption_before_the_start_does_not_count() -> None:
    assert is_preempted(record(PreemptTime=at(4)))
    assert not is_preempted(record(PreemptTime=at(-100)))
    assert not is_preempted(record(PreemptTime=None))


def test_a_job_is_back_once_it_waits_or_its_restart_is_counted() -> None:
    assert is_back(record(JobState="PENDING"), 0)
    assert is_back(record(JobState="COMPLETING", Restarts="3"), 2)
    assert not is_back(record(JobState="COMPLETING", Restarts="2"), 2)
    assert not is_back(record(), 0)


def test_end_is_known_only_with_a_time_limit() -> None:
    assert (end_of(record()), length_s(record())) == (after(300), 300)
    assert (end_of(record(EndTime="Unknown")), length_s(record(EndTime="Unknown"))) == (None, None)


@pytest.fixture
def central_europe(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as zone:
        zone.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("central_europe")
def test_end_in_the_hour_that_is_repeated_is_the_one_that_slurm_told_the_job() -> None:
    job = record(StartTime="2026-10-24T22:30:00", EndTime="2026-10-25T02:30:00")
    first = datetime(2026, 10, 25, 0, 30, tzinfo=UTC).timestamp()
    assert end_of(job, told=first) == first
    assert end_of(job, told=first + 3600) == first + 3600
    # The limit was raised since.
    assert end_of(job, told=first - 7200) == first + 3600
    assert length_s(record(StartTime="2026-10-24T22:30:00", EndTime="2026-10-25T03:30:00")) == 6 * 3600
    assert length_s(record(StartTime="2026-10-25T02:50:00", EndTime="2026-10-25T02:10:00")) == 20 * 60


@pytest.mark.parametrize(
    "environ, target",
    [
        ({"SLURM_JOB_ID": "12"}, "12"),
        ({"SLURM_JOB_ID": "14", "SLURM_ARRAY_JOB_ID": "12", "SLURM_ARRAY_TASK_ID": "3"}, "12_3"),
        # This one's own id is that of the array: bare, it would mean all the tasks.
        ({"SLURM_JOB_ID": "12", "SLURM_ARRAY_JOB_ID": "12", "SLURM_ARRAY_TASK_ID": "0"}, "12_0"),
        ({"SLURM_JOB_ID": "13", "SLURM_HET_JOB_ID": "12"}, "12"),
    ],
)
def test_job_target_is_the_own_array_task_or_the_leader_of_an_uneven_job(
    environ: dict[str, str], target: str
) -> None:
    assert job_target(environ) == target


def test_the_first_start_has_no_restarts_before_it() -> None:
    assert restarts_before({}) == restarts_before({"SLURM_RESTART_COUNT": ""}) == 0
    assert restarts_before({"SLURM_RESTART_COUNT": "2"}) == 2
