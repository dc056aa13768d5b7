"""Slurm's programs as they answer on a real cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from slurm.client import programs
from slurm.client.hostlist import expand
from slurm.client.queue import JobState, poll
from slurm.submission.submit_job import move_dependants
from toolkit.errors import SlurmRefused, SlurmUnavailable, UserError

from .cluster import Cluster
from .waiting import wait_until

pytestmark = pytest.mark.usefixtures("on_the_login_node")

Submit = Callable[..., str]


@pytest.fixture
def submit(on_the_login_node: None, tmp_path: Path) -> Iterator[Submit]:
    """Submits a script with options; all jobs are gone afterwards."""
    ids: list[str] = []

    def submit(body: str, *options: str) -> str:
        script = tmp_path / "job.sh"
        script.write_text(f"#!/bin/sh\n{body}\n")
        ids.append(programs.sbatch(script, tmp_path, options=["--output=%j.out", *options]))
        return ids[-1]

    yield submit
    for job_id in ids:
        programs.cancel(job_id)
    for job_id in ids:
        _wait(job_id, lambda state: state.is_terminal)


def _wait(job_id: str, holds: Callable[[JobState], bool]) -> JobState:
    wait_until(lambda: holds(poll([job_id])[job_id]), lambda: f"job {job_id}: {poll([job_id])[job_id]}")
    return poll([job_id])[job_id]


def test_a_job_is_found_by_id_name_and_user(submit: Submit, tmp_path: Path) -> None:
    name = "it's a=b, |name|\twith\nall of it"
    job_id = submit("sleep 60", f"--job-name={name}", "--hold")
    (job,) = programs.jobs(ids=[job_id])
    assert (job.job_id, job.state, job.reason, job.name) == (job_id, "PENDING", "JobHeldUser", name)
    assert (job.work_dir, job.restarts, job.hosts) == (str(tmp_path), 0, "")
    assert job in programs.jobs(user=job.user)
    assert programs.jobs(ids=[job_id], names=["another"]) == []
    plain = submit("sleep 60", "--job-name=movies-12ab", "--hold")
    assert [job.job_id for job in programs.jobs(names=["movies-12ab"])] == [plain]


def test_an_unknown_job_is_left_out(submit: Submit) -> None:
    job_id = submit("sleep 60", "--hold")
    assert programs.jobs(ids=["999999"]) == []
    assert [job.job_id for job in programs.jobs(ids=["999999", job_id])] == [job_id]
    assert poll(["999999"])["999999"].state == "unknown"


def test_a_finished_job_is_known_to_controller_and_accounting(submit: Submit) -> None:
    job_id = submit("true")
    state = _wait(job_id, lambda state: state.is_terminal)
    assert (state.state, state.restarts) == ("finished", 0)
    wait_until(
        lambda: [start.state for start in programs.accounting([job_id])] == ["COMPLETED"],
        lambda: str(programs.accounting([job_id])),
    )


def test_failing_job_is_reported_as_failed(submit: Submit) -> None:
    job_id = submit("exit 3")
    assert _wait(job_id, lambda state: state.is_terminal).state == "failed"
    assert programs.show_job(job_id)["ExitCode"] == "3:0"


def test_a_requeued_job_is_released_from_its_wait(submit: Submit) -> None:
    job_id = submit("sleep 60", "--requeue")
    _wait(job_id, lambda state: state.state == "running")
    programs.requeue(job_id)
    waiting = _wait(job_id, lambda state: state.slurm_state == "PENDING")
    assert (waiting.state, waiting.restarts) == ("requeued", 1)
    programs.requeue(job_id)
    programs.release_now(job_id)
    again = _wait(job_id, lambda state: state.state != "requeued")
    assert (again.state, again.restarts) == ("running", 1)
    wait_until(lambda: len(programs.accounting([job_id])) == 2, lambda: str(programs.accounting([job_id])))


def test_requeue_of_a_job_with_no_requeue_is_refused(submit: Submit) -> None:
    job_id = submit("sleep 60", "--no-requeue")
    _wait(job_id, lambda state: state.state == "running")
    with pytest.raises(SlurmRefused, match="disabled"):
        programs.requeue(job_id)


def test_an_array_is_polled_as_a_whole_and_by_task(submit: Submit) -> None:
    job_id = submit("test $SLURM_ARRAY_TASK_ID = 0 || sleep 60", "--array=0-3%2")
    states = poll([job_id, f"{job_id}_0", f"{job_id}_3"])
    assert set(states) == {job_id, f"{job_id}_0", f"{job_id}_3"}
    _wait(f"{job_id}_0", lambda state: state.state == "finished")
    _wait(f"{job_id}_1", lambda state: state.state == "running")
    assert poll([job_id])[job_id].state == "running"


def test_dependants_of_a_job_can_be_moved_to_another_job(submit: Submit) -> None:
    old, new = submit("true", "--hold"), submit("true", "--hold")
    after = f"--dependency=afterany:{old}"
    plain, array = submit("true", after), submit("true", after, "--array=0-3%2")
    uneven = submit("#SBATCH hetjob\n#SBATCH --nodes=1\ntrue", after)
    ids = [plain, array, f"{uneven}+0", f"{uneven}+1"]
    assert sorted(move_dependants(old, new)) == sorted(ids)
    waiting = programs.dependencies(str(os.getuid()))
    assert [waiting[job_id] for job_id in ids] == [f"afterany:{new}"] * 4


def test_a_cancelled_job_may_be_cancelled_again(submit: Submit) -> None:
    job_id = submit("sleep 60", "--hold")
    programs.cancel(job_id)
    assert _wait(job_id, lambda state: state.is_terminal).state == "cancelled"
    programs.cancel(job_id)
    programs.cancel("999999")


def test_a_job_over_the_partitions_limit_comes_with_advice(submit: Submit) -> None:
    job_id = submit("true", "--time=2-00:00:00")
    # At first Slurm only says PartitionConfig.
    _wait(job_id, lambda state: state.reason == "PartitionTimeLimit" and "resources.time" in state.advice)


def test_sbatch_test_only_submits_nothing_and_says_when_a_job_would_start() -> None:
    answer = programs.test_only("#!/bin/sh\n#SBATCH --nodes=2 --job-name=only-a-test\ntrue\n")
    assert "to start at" in answer
    assert programs.jobs(names=["only-a-test"]) == []
    with pytest.raises(SlurmRefused, match="node configuration is not available"):
        programs.test_only("#!/bin/sh\n#SBATCH --gres=gpu:99\ntrue\n")


def test_partitions_hosts_and_settings_are_those_of_the_cluster(cluster: Cluster) -> None:
    partitions = {partition.name: partition for partition in programs.partitions()}
    assert set(partitions) == {"main", "preemptible", "preemptible0", "urgent"}
    assert [name for name, partition in partitions.items() if partition.is_default] == ["main"]
    assert {partition.max_time_min for partition in partitions.values()} == {60}
    assert (partitions["preemptible"].preempt_mode, partitions["preemptible"].grace_s) == ("REQUEUE", 10)
    groups = [group for group in programs.hosts() if group.partition == "main"]
    assert [host for group in groups for host in expand(group.hosts)] == cluster.hosts
    assert {group.gres for group in groups} == {"gpu:4"}
    assert programs.config()["ClusterName"] == cluster.name
    assert programs.qos_flags("normal") == frozenset()
    assert programs.qos_flags("nowhere") is None


def test_stopped_controller_is_unavailable_until_it_starts(cluster: Cluster) -> None:
    assert programs.is_available()
    cluster.stop_controller()
    try:
        assert not programs.is_available()
        with pytest.raises(SlurmUnavailable, match="Unable to contact slurm controller"):
            programs.partitions()
    finally:
        cluster.start_controller()
    assert programs.is_available()


def test_limits_on_jobs_in_the_queue_are_read(cluster: Cluster) -> None:
    set_limits = ("sacctmgr", "--immediate", "modify")
    try:
        cluster.run(*set_limits, "user", "root", "set", "MaxSubmitJobs=7")
        assert programs.submit_limit("root", None, None) == (7, "account", "research")
        cluster.run(*set_limits, "qos", "normal", "set", "MaxSubmitJobsPerUser=5")
        assert programs.submit_limit("root", None, None) == (5, "qos", "normal")
        assert programs.submit_limit("root", None, "none") == (7, "account", "research")
    finally:
        cluster.run(*set_limits, "user", "root", "set", "MaxSubmitJobs=-1")
        cluster.run(*set_limits, "qos", "normal", "set", "MaxSubmitJobsPerUser=-1")


#: Not ids of jobs, or of none that Slurm can have.
_NO_IDS = (
    "zzz",
    "--me",
    "-1",
    "12_",
    "0",
    "00",
    "4294967294",
    "4294967295",
    "4294967296",
    "9999999999",
    "9" * 4000,
)


def test_invalid_ids_do_not_hide_valid_jobs(submit: Submit) -> None:
    job_id = submit("sleep 60", "--hold")
    states = poll([*_NO_IDS, job_id, f"{job_id}_4294967295", f"{job_id}+9999999999"])
    assert states[job_id].state == "held"
    assert {states[each].slurm_state for each in _NO_IDS} == {""}
    for each in _NO_IDS:
        assert programs.jobs(ids=[each]) == programs.accounting([each]) == []


def test_functions_that_change_jobs_refuse_invalid_ids(submit: Submit) -> None:
    job_id = submit("sleep 60", "--hold")
    for act in (programs.cancel, programs.requeue, programs.release_now, programs.show_job):
        with pytest.raises(UserError):
            act("--me")
    with pytest.raises(UserError):
        programs.signal_steps("--me", "KILL")
    with pytest.raises(UserError):
        programs.depend_on(f"{job_id} nice=5", "afterany:1")
    assert poll([job_id])[job_id].state == "held"
    programs.cancel(job_id)
    _wait(job_id, lambda state: state.state == "cancelled")
