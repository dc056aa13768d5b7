"""States in the user's words."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm.client.queue import INTERRUPTED, STATES, JobState
from slurm.status import phrases
from toolkit.run.failure.classes import FAILURE_CLASSES, NO_PROGRESS

NOW = datetime(2026, 3, 2, 13, 30)
WAITING = JobState(state="pending", slurm_state="PENDING")


def at(hour: int, minute: int, days: int = 0) -> datetime:
    return datetime(2026, 3, 2, hour, minute) + timedelta(days=days)


@pytest.mark.parametrize(
    "job, told",
    [
        (JobState(state="pending", reason="Priority"), "waiting for GPUs (Priority)"),
        (JobState(state="pending", reason=""), "waiting for GPUs"),
        (
            JobState(state="pending", reason="Resources", started=at(15, 10)),
            "waiting for GPUs (about 15:10, Resources)",
        ),
        # A time that has passed is no expectation.
        (JobState(state="pending", reason="Resources", started=at(13, 0)), "waiting for GPUs (Resources)"),
        (
            JobState(state="requeued", reason="BeginTime", started=at(14, 3), restarts=1),
            "waiting after requeue until 14:03",
        ),
        (JobState(state="pending", reason="BeginTime", started=at(14, 3, 1)), "waiting until Tue 14:03"),
        (JobState(state="pending", reason="BeginTime", started=at(14, 3, 40)), "waiting until 11 Apr 14:03"),
        # Slurm has not yet looked again at a job whose begin time was moved.
        (JobState(state="pending", reason="", started=at(14, 3)), "waiting until 14:03"),
        (JobState(state="requeued", reason="BeginTime", restarts=1), "waiting after requeue a moment"),
        (
            JobState(state="pending", reason="Dependency", depends="afterok:12(unfulfilled)"),
            "waiting for job 12",
        ),
        (
            JobState(state="pending", reason="Dependency", depends="afterok:12_3(unfulfilled),afterany:9"),
            "waiting for job 12_3 and 1 more",
        ),
        (JobState(state="pending", reason="Dependency"), "waiting for another job"),
        (JobState(state="pending", reason="JobArrayTaskLimit"), "waiting for its turn in the array"),
        (
            JobState(state="pending", reason="ReqNodeNotAvail, UnavailableNodes:node[1-2]"),
            "waiting for a host that is not available (ReqNodeNotAvail)",
        ),
        (
            JobState(state="pending", reason="AssocGrpGRES"),
            "waiting for others of its account (AssocGrpGRES)",
        ),
        (
            JobState(state="pending", reason="QOSMaxJobsPerUserLimit"),
            "waiting for own other jobs (QOSMaxJobsPerUserLimit)",
        ),
        (
            JobState(state="pending", reason="QOSMaxCpuPerUserLimit"),
            "waiting for own other jobs (QOSMaxCpuPerUserLimit)",
        ),
        (
            JobState(state="pending", reason="PartitionDown"),
            "waiting for its partition to open (PartitionDown)",
        ),
        (JobState(state="pending", reason="SomethingNew"), "waiting (SomethingNew)"),
        (
            JobState(state="pending", reason="PartitionTimeLimit", advice="cancel it"),
            "never starts (PartitionTimeLimit)",
        ),
    ],
)
def test_reason_of_a_pending_job_is_phrased_in_words(job: JobState, told: str) -> None:
    assert phrases.waits_for(job, hosts="GPUs", now=NOW) == told


def test_a_job_without_gpus_waits_for_hosts() -> None:
    assert phrases.waits_for(replace(WAITING, reason="Resources"), now=NOW) == "waiting for hosts (Resources)"


@given(st.text(), st.text(), st.none() | st.datetimes())
def test_any_pending_reason_can_be_phrased(reason: str, depends: str, started: datetime | None) -> None:
    job = replace(WAITING, reason=reason, depends=depends, started=started)
    assert phrases.waits_for(job, now=NOW).startswith(("waiting", "never starts", "starting"))


@pytest.mark.parametrize("kind", [kind for kind in FAILURE_CLASSES if kind != NO_PROGRESS])
def test_every_class_of_failure_has_words_of_its_own(kind: str) -> None:
    assert "_" not in phrases.failed(kind)
    assert phrases.failed(kind) in {f"failed: {told}" for told in phrases._FAILURES.values()}


def test_phrased_slurm_states_exist() -> None:
    """A typo in the tables would never be noticed."""
    assert {*phrases.RUNNING, *phrases._ENDS} <= {*STATES, *INTERRUPTED}
