"""States in the user's words."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm.client.queue import INTERRUPTED, STATES, JobState
from slurm.client.stop_reason import CANCELLED, HOST_LOST, PREEMPTED, REQUESTED, TIME_LIMIT
from slurm.status import phrases
from toolkit.run.failure.classes import FAILURE_CLASSES, NO_PROGRESS

NOW = datetime(2026, 3, 2, 13, 30)


def at(hour: int, minute: int, days: int = 0) -> datetime:
    return datetime(2026, 3, 2, hour, minute) + timedelta(days=days)


def waiting(reason: str, **facts: Any) -> JobState:
    return JobState(state="pending", slurm_state="PENDING", reason=reason, **facts)


def requeued(**facts: Any) -> JobState:
    return JobState(state="requeued", slurm_state="PENDING", reason="BeginTime", restarts=1, **facts)


@pytest.mark.parametrize(
    "job, told",
    [
        (waiting("Priority"), "waiting for GPUs (Priority)"),
        (waiting(""), "waiting for GPUs"),
        (waiting("Resources", started=at(15, 10)), "waiting for GPUs (about 15:10, Resources)"),
        # A time that has passed is no expectation.
        (waiting("Resources", started=at(13, 0)), "waiting for GPUs (Resources)"),
        (requeued(started=at(14, 3)), "waiting after requeue until 14:03"),
        (waiting("BeginTime", started=at(14, 3, 1)), "waiting until Tue 14:03"),
        (waiting("BeginTime", started=at(14, 3, 40)), "waiting until 11 Apr 14:03"),
        # Slurm has not yet looked again at a job whose begin time was moved.
        (waiting("", started=at(14, 3)), "waiting until 14:03"),
        (requeued(), "waiting a moment after requeue"),
        (waiting("Dependency", depends="afterok:12(unfulfilled)"), "waiting for job 12"),
        (
            waiting("Dependency", depends="afterok:12_3(unfulfilled),afterany:9"),
            "waiting for job 12_3 and 1 more",
        ),
        (waiting("Dependency"), "waiting for another job"),
        (waiting("JobArrayTaskLimit"), "waiting for its turn in the array"),
        (
            waiting("ReqNodeNotAvail, UnavailableNodes:node[1-2]"),
            "waiting for a host that is not available (ReqNodeNotAvail)",
        ),
        (
            waiting(
                "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"
            ),
            "waiting for GPUs (some are down, drained or reserved)",
        ),
        (
            waiting("Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved"),
            "waiting for GPUs (some are down, drained or reserved)",
        ),
        (
            waiting("ReqNodeNotAvail, Reserved for maintenance", started=at(15, 45)),
            "waiting for GPUs (about 15:45, reserved for maintenance)",
        ),
        (
            waiting("ReqNodeNotAvail,_May_be_reserved_for_other_job", started=at(15, 9)),
            "waiting for GPUs (about 15:09, may be reserved for other job)",
        ),
        (
            waiting("ReqNodeNotAvail, UnavailableNodes:reserved[1-2]"),
            "waiting for a host that is not available (ReqNodeNotAvail)",
        ),
        (waiting("AssocGrpGRES"), "waiting for others of its account (AssocGrpGRES)"),
        (waiting("QOSMaxJobsPerUserLimit"), "waiting for own other jobs (QOSMaxJobsPerUserLimit)"),
        (waiting("QOSMaxCpuPerUserLimit"), "waiting for own other jobs (QOSMaxCpuPerUserLimit)"),
        (waiting("PartitionDown"), "waiting for its partition to open (PartitionDown)"),
        (waiting("SomethingNew"), "waiting (SomethingNew)"),
        (waiting("PartitionTimeLimit", advice="cancel it"), "never starts (PartitionTimeLimit)"),
    ],
)
def test_reason_of_a_pending_job_is_phrased_in_words(job: JobState, told: str) -> None:
    assert phrases.waits_for(job, hosts="GPUs", now=NOW) == told


def test_a_job_without_gpus_waits_for_hosts() -> None:
    assert phrases.waits_for(waiting("Resources"), now=NOW) == "waiting for hosts (Resources)"


@given(st.text(), st.text(), st.none() | st.datetimes())
def test_any_pending_reason_can_be_phrased(reason: str, depends: str, started: datetime | None) -> None:
    job = waiting(reason, depends=depends, started=started)
    assert phrases.waits_for(job, now=NOW).startswith(("waiting", "never starts", "starting"))


@pytest.mark.parametrize("kind", [kind for kind in FAILURE_CLASSES if kind != NO_PROGRESS])
def test_every_class_of_failure_has_words_of_its_own(kind: str) -> None:
    assert "_" not in phrases.failed(kind)
    assert phrases.failed(kind) in {f"failed: {told}" for told in phrases._FAILURES.values()}


@pytest.mark.parametrize("why", [PREEMPTED, TIME_LIMIT, REQUESTED, CANCELLED, HOST_LOST])
def test_every_reason_of_a_stop_has_words_of_its_own(why: str) -> None:
    assert phrases.stopped(why) == phrases._STOPS[why][0]
    told = phrases.stopped_by(why)
    assert told != f"stopped by {why}"
    assert "_" not in told


def test_a_stop_by_a_signal_is_said_with_its_name() -> None:
    found = (phrases.stopped("SIGINT"), phrases.stopped_by("SIGINT"))
    assert found == ("stopped: SIGINT", "stopped by SIGINT")


def test_phrased_slurm_states_exist() -> None:
    """A typo in the tables would never be noticed."""
    assert {*phrases.RUNNING, *phrases._ENDS} <= {*STATES, *INTERRUPTED}
