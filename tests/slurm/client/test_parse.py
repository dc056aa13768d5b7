"""Slurm's output, recorded from a real cluster (22.05), as values; hostile values included."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm.client.parse import (
    SEPARATOR,
    Job,
    fields_of_line,
    parse_accounting,
    parse_config,
    parse_hosts,
    parse_job,
    parse_jobs,
    parse_partitions,
)

RECORDED = Path(__file__).parents[1] / "support" / "recorded"


def _recorded(name: str) -> str:
    return (RECORDED / name).read_text()


@pytest.fixture
def jobs() -> dict[str, Job]:
    return {job.job_id: job for job in parse_jobs(_recorded("squeue.txt"))}


def test_every_job_array_task_and_component_is_read(jobs: dict[str, Job]) -> None:
    assert sorted(jobs) == [
        *("114", "115_0", "115_1", "115_2", "115_3", "116", "117"),
        *("118", "119", "120", "121+0", "121+1", "123"),
    ]
    assert {job.base_id for job_id, job in jobs.items() if job_id.startswith("115")} == {"115"}
    assert (jobs["114"].base_id, jobs["121+1"].base_id) == ("114", "121")


def test_a_running_job_is_read_in_full(jobs: dict[str, Job]) -> None:
    moment = datetime(2026, 11, 21, 11, 56, 50)
    assert jobs["114"] == Job(
        job_id="114",
        raw_id="114",
        state="RUNNING",
        reason="",
        restarts=0,
        requeue=True,
        submitted=moment,
        started=moment,
        hosts="rack1node[01-02]",
        user="root",
        partition="main",
        dependency="",
        work_dir="/home/ada",
        name="we|ird, na me=x\ttab",
    )


def test_job_name_with_a_line_break_is_read(jobs: dict[str, Job]) -> None:
    assert jobs["116"].name == "new\nline"
    assert jobs["116"].reason == "JobHeldUser"


def test_a_reason_may_be_a_sentence(jobs: dict[str, Job]) -> None:
    assert jobs["118"].reason.startswith("Job's account not known, so it can't use")
    assert jobs["118"].partition == "small"


def test_restarts_permission_to_requeue_and_missing_times_are_read(jobs: dict[str, Job]) -> None:
    assert (jobs["120"].restarts, jobs["120"].requeue) == (1, True)
    assert (jobs["119"].restarts, jobs["119"].requeue) == (0, False)
    assert jobs["117"].started is None


def test_a_job_record_is_read_up_to_free_text_with_equal_signs() -> None:
    record = parse_job(_recorded("job_with_comment.txt"))
    assert record["JobName"] == "we|ird, na me=x\ttab"
    assert record["Comment"] == "a b=c State=FAILED"
    assert record["JobState"] == "RUNNING"
    assert record["NodeList"] == "rack1node[01-02]"
    assert record["TRES"] == "cpu=2,mem=200M,node=2,billing=2"
    assert record["CPUs/Task"] == "1"
    assert record["PreemptTime"] == "None"


def test_of_several_job_records_the_first_is_read() -> None:
    text = _recorded("job_array.txt")
    first = text.split()[0].removeprefix("JobId=")
    assert text.count("JobId=") > 1
    assert parse_job(text)["JobId"] == first


def test_the_reason_of_a_job_record_is_one_word() -> None:
    assert parse_job(_recorded("job_refused.txt"))["Reason"].endswith("(small_allows_physics,chemistry)")


def test_settings_are_read_with_equal_signs_and_blanks_in_them() -> None:
    config = parse_config(_recorded("config.txt"))
    assert config["MaxArraySize"] == "1001"
    assert config["AuthInfo"] == "cred_expire=5"
    assert config["SchedulerParameters"] == "batch_sched_delay=1,bf_interval=2,sched_interval=2"
    assert config["SLURM_VERSION"] == "22.05.8"
    assert config["KillWait"] == "5 sec"
    assert config["SlurmctldHost[0]"] == "head(10.77.0.1)"


def test_partitions_are_read_with_their_limits() -> None:
    main, small, down = parse_partitions(_recorded("partitions.txt"))
    assert (main.name, main.is_default, main.state, main.total_nodes) == ("main", True, "UP", 4)
    assert (main.max_time_min, main.max_nodes, main.allow_accounts) == (1440, None, None)
    assert (small.is_default, small.max_time_min, small.max_nodes, small.min_nodes) == (False, 60, 1, 0)
    assert small.allow_accounts == frozenset({"physics", "chemistry"})
    assert (down.state, down.max_time_min, down.deny_accounts) == ("DOWN", None, frozenset())
    assert main.hosts == "rack1node[01-02],rack2node[01-02]"
    assert (main.preempt_mode, main.grace_s) == ("REQUEUE", 0)


def test_denied_accounts_and_allowed_qos_are_read() -> None:
    line = (
        "PartitionName=p DenyAccounts=a,b AllowQos=long DenyQos=short State=UP MaxCPUsPerNode=4 GraceTime=30"
    )
    (partition,) = parse_partitions(line)
    assert partition.deny_accounts == {"a", "b"}
    assert partition.allow_qos == frozenset({"long"})
    assert partition.deny_qos == {"short"}
    assert (partition.max_cpus_per_node, partition.grace_s) == (4, 30)


def test_equal_hosts_are_grouped() -> None:
    groups = parse_hosts(_recorded("sinfo.txt"))
    assert [(g.partition, g.hosts, g.cpus, g.memory_mb, g.gres) for g in groups] == [
        ("main", "rack2node[01-02]", 8, 16000, "gpu:v100:3"),
        ("main", "rack1node[01-02]", 4, 8000, "gpu:a100:2"),
        ("small", "rack1node[01-02]", 4, 8000, "gpu:a100:2"),
        ("down", "rack1node01", 4, 8000, "gpu:a100:2"),
    ]
    assert groups[1].features == {"a100", "ib"}


def test_a_host_without_gres_and_features_has_none() -> None:
    (group,) = parse_hosts(SEPARATOR.join(["p", "4+", "8000+", "(null)", "(null)", "n1"]) + "\n")
    assert (group.cpus, group.memory_mb, group.gres, group.features) == (4, 8000, "", frozenset())


def test_accounting_has_a_record_for_each_start_of_a_job() -> None:
    text = (
        "7|7|REQUEUED|0:0|2026-11-21T10:00:01|n1|mine.0\n"
        "7|7|CANCELLED by 1000|0:15|Unknown|None assigned|mine.0\n"
    )
    first, last = parse_accounting(text.replace("|", SEPARATOR))
    assert (first.state, first.hosts, first.name) == ("REQUEUED", "n1", "mine.0")
    assert first.started == datetime(2026, 11, 21, 10, 0, 1)
    assert (last.state, last.exit_code, last.started, last.hosts) == ("CANCELLED by 1000", "0:15", None, "")


_KEYS = st.from_regex(r"[A-Z][A-Za-z]{1,8}", fullmatch=True)
_VALUES = st.from_regex(r"[A-Za-z0-9_,.:%()*]{0,8}( [a-z0-9#]{1,5}){0,2}", fullmatch=True)


@given(st.dictionaries(_KEYS, _VALUES, min_size=1, max_size=6))
def test_values_with_blanks_are_read_back(fields: dict[str, str]) -> None:
    line = " ".join(f"{key}={value}" for key, value in fields.items())
    assert fields_of_line(line) == {key: value.strip() for key, value in fields.items()}
