"""What the cluster's settings mean for requeueing, sizes, memory and hosts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slurm.doctor.checks.rules import hosts, limits, requeue_delay_s, requeueing, scheduler
from slurm.doctor.findings import NOTE, OK
from tests.slurm.doctor.clusters import about, cluster, partition


@pytest.mark.parametrize(
    "settings, delay_s",
    [
        ({}, 5),  # of the recorded cluster
        ({"AuthInfo": "(null)"}, 120),
        ({"AuthInfo": "socket=/run/munge"}, 120),
        ({"SLURM_VERSION": "25.11.0", "SchedulerParameters": "bf_interval=2,requeue_delay=7"}, 7),
        ({"SLURM_VERSION": "25.11.0", "AuthInfo": "cred_expire=30"}, None),
    ],
)
def test_how_long_a_requeued_job_waits_depends_on_the_version(
    settings: dict[str, str], delay_s: int | None
) -> None:
    assert requeue_delay_s(cluster(**settings)) == delay_s


def test_a_long_wait_names_what_shortens_it() -> None:
    finding = about(list(requeueing(cluster(AuthInfo="(null)"))), "waits 120 s")
    assert (finding.level, "stk watch" in finding.follows) == (NOTE, True)


def test_requeueing_off_by_default_is_ok() -> None:
    assert about(list(requeueing(cluster(JobRequeue="0"))), "--requeue").level == OK


def test_old_slurm_and_missing_accounting_are_noted() -> None:
    findings = list(
        scheduler(cluster(SLURM_VERSION="20.02.1", AccountingStorageType="accounting_storage/none"))
    )
    assert about(findings, "Slurm 20.02.1 answers").level == NOTE
    assert about(findings, "there is no accounting").level == NOTE
    assert "cluster demo" in about(list(scheduler(cluster())), "Slurm 22.05.8").found


def test_limits_of_accounts_and_qos_count_where_they_are_enforced() -> None:
    findings = list(limits(cluster(AccountingStorageEnforce="associations,limits,qos")))
    mine = about(findings, "account research")
    assert (mine.level, mine.key) == (NOTE, "resources.account")
    assert "8 jobs that run (MaxJobs)" in mine.found
    assert "gres/gpu=2 of each user (MaxTRESPU)" in about(findings, "QOS spare").found


def test_limits_that_are_not_enforced_are_not_listed() -> None:
    findings = list(limits(cluster()))
    assert about(findings, "not enforced").level == OK
    assert not [each for each in findings if "account research" in each.found]


@pytest.mark.parametrize(
    "settings, words",
    [
        ({}, "memory is not allocated"),
        ({"SelectTypeParameters": "CR_CORE_MEMORY", "DefMemPerNode": "UNLIMITED"}, "gets all of its host"),
        ({"SelectTypeParameters": "CR_CORE_MEMORY", "DefMemPerCPU": "4000"}, "DefMemPerCPU=4000"),
        ({"SelectTypeParameters": "CR_CORE_MEMORY", "MaxMemPerNode": "64000"}, "MaxMemPerNode=64000"),
    ],
)
def test_default_and_maximum_memory_of_a_job_are_reported(settings: dict[str, str], words: str) -> None:
    about(list(limits(cluster(**settings))), words)


def test_default_memory_of_a_partition_is_reported() -> None:
    here = replace(
        cluster(SelectTypeParameters="CR_CPU_MEMORY"),
        partitions=(partition("main", default_memory="DefMemPerNode=8000"),),
    )
    assert about(list(limits(here)), "DefMemPerNode=8000").key == "resources.mem"


def test_disabled_job_arrays_are_noted() -> None:
    assert about(list(limits(cluster(MaxArraySize="0"))), "disabled").level == NOTE


def test_hosts_that_isolate_jobs_are_ok() -> None:
    settings = {
        "ProctrackType": "proctrack/cgroup",
        "TaskPlugin": "task/affinity,task/cgroup",
        "ConstrainRAMSpace": "yes",
        "ConstrainDevices": "yes",
        "JobAcctGatherType": "jobacct_gather/cgroup",
    }
    findings = list(hosts(cluster(**settings)))
    assert {each.level for each in findings} == {OK}
    assert "counts from 0" in about(findings, "ConstrainDevices").follows


def test_hosts_that_do_not_isolate_jobs_are_described() -> None:
    findings = list(hosts(cluster(ConstrainDevices="no", ConstrainRAMSpace="no")))
    assert about(findings, "proctrack/linuxproc").level == NOTE
    assert about(findings, "TaskPlugin none").key == "resources.exclusive"
    assert "other jobs' GPUs can be reached" in about(findings, "ConstrainDevices").found
    about(findings, "kept to the memory it asked for")


def test_memory_may_be_watched_without_control_groups() -> None:
    assert about(list(hosts(cluster(JobAcctGatherParams="OverMemoryKill"))), "is killed").level == OK
