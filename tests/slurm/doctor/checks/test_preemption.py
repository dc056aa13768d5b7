"""How a job is told to leave, and whether the time left is enough for the saves that were measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slurm.doctor.checks.preemption import preemption
from slurm.doctor.checks.saves import Saves
from slurm.doctor.cluster import Cluster
from slurm.doctor.findings import CHANGE, NOTE, OK, Finding
from tests.slurm.doctor.clusters import about, cluster, partition, qos


def saves(longest_s: float) -> Saves:
    return Saves(runs=3, saves=40, median_s=1.5, longest_s=longest_s, longest_run="big-1234")


def found(here: Cluster, longest_s: float | None = None) -> list[Finding]:
    return list(preemption(here, None if longest_s is None else saves(longest_s)))


def test_the_time_to_save_is_grace_and_kill_wait_together() -> None:
    findings = found(cluster(), 4.0)
    finding = about(findings, "partition preemptible:")
    assert (finding.level, finding.key) == (OK, "")
    assert (
        "of partition urgent (PreemptMode REQUEUE); 15 s to save: GraceTime 10 + KillWait 5" in finding.found
    )


def test_a_save_that_takes_most_of_the_time_calls_for_a_change() -> None:
    finding = about(found(cluster(), 4.0), "partition preemptible0:")
    assert (finding.level, finding.key) == (CHANGE, "checkpoint.every_minutes")
    assert "5 s to save: GraceTime 0 + KillWait 5" in finding.found
    assert "your longest save took 4.0 s" in finding.follows


def test_partitions_that_are_alike_share_a_line() -> None:
    one, two = partition("preemptible"), partition("preemptible", name="second")
    here = replace(cluster(), partitions=(one, two, partition("urgent")))
    about(found(here), "partitions preemptible, second: ")


def test_one_partition_may_be_looked_at_alone() -> None:
    findings = list(preemption(cluster(), None, "preemptible"))
    about(findings, "partition preemptible:")
    assert not [each for each in findings if "preemptible0" in each.found]
    about(list(preemption(cluster(), None, "urgent")), "no partition preempts partition urgent")


def test_measured_saves_are_reported() -> None:
    told = about(found(cluster(), 4.0), "your last 3 runs")
    assert told.found.endswith("took 1.5 s (median of 40), 4.0 s at most (big-1234)")
    assert about(found(cluster()), "no save has been measured").level == NOTE


def test_no_save_is_too_long_for_a_time_limit() -> None:
    """The ranks leave as early as a step and a save need."""
    assert about(found(cluster(), 100.0), "time limit").level == OK


@pytest.mark.parametrize(
    "settings, name",
    [
        ({}, "SIGTERM"),
        ({"SlurmctldParameters": "enable_configless,preempt_send_user_signal"}, "USR2"),
        ({"PreemptParameters": "send_user_signal"}, "USR2"),
    ],
)
def test_preemption_signal_is_that_of_the_cluster(settings: dict[str, str], name: str) -> None:
    assert name in about(found(cluster(**settings)), "a preempted job gets").found


def test_partitions_are_not_mentioned_without_preemption() -> None:
    findings = found(cluster(PreemptType="preempt/none"), 4.0)
    assert about(findings, "no job is preempted").level == OK
    assert not [each for each in findings if "GraceTime" in each.found]


@pytest.mark.parametrize("exempt", ["00:05:00", "1-00:00:00"])
def test_the_time_that_is_exempt_from_preemption_is_told_in_full(exempt: str) -> None:
    here = cluster(PreemptType="preempt/partition_prio", PreemptExemptTime=exempt)
    finding = about(found(here), "PreemptExemptTime")
    assert (finding.level, f"in its first {exempt} (" in finding.found) == (OK, True)


def test_a_cluster_without_exempt_time_has_no_finding_on_it() -> None:
    assert not [each for each in found(cluster()) if "PreemptExemptTime" in each.found]


def test_preemption_by_qos_uses_the_grace_of_the_qos() -> None:
    victim = qos("spare", grace_s=60, preempt_mode="requeue")
    here = replace(
        cluster(PreemptType="preempt/qos"), qos=(victim, qos("high", preempts=frozenset({"spare"})))
    )
    finding = about(found(here, 4.0), "QOS spare")
    assert "65 s to save: GraceTime 60 + KillWait 5" in finding.found
    assert (finding.level, "of QOS high" in finding.found) == (OK, True)


def test_qos_with_preempt_mode_cluster_has_the_mode_of_the_cluster() -> None:
    here = cluster(PreemptType="preempt/qos", PreemptMode="CANCEL")
    here = replace(here, qos=(qos("low"), qos("high", preempts=frozenset({"low"}))))
    finding = about(found(here), "QOS low")
    assert (finding.level, "PreemptMode CANCEL" in finding.found) == (NOTE, True)


def test_missing_qos_are_reported_as_unknown() -> None:
    here = replace(cluster(PreemptType="preempt/qos"), qos=None)
    assert about(found(here), "jobs are preempted by QOS").level == NOTE


def test_a_suspended_job_needs_no_time_to_save() -> None:
    low = partition("preemptible", preempt_mode="GANG,SUSPEND")
    here = replace(cluster(), partitions=(low, partition("urgent")))
    finding = about(found(here, 100.0), "partition preemptible:")
    assert (finding.level, "to save" in finding.found) == (NOTE, False)
