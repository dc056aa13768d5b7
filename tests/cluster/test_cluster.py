"""The cluster behaves like a cluster: what the other tests build on."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import hosts_file
from .cluster import ACCOUNT, Cluster
from .errors import ClusterError, CommandFailed
from .waiting import wait_until


@pytest.fixture(autouse=True)
def leave_no_jobs(cluster: Cluster) -> Iterator[None]:
    yield
    cluster.run("scancel", "--user=root")
    wait_until(lambda: not queue(cluster), complaint=lambda: f"jobs do not go away:\n{queue(cluster)}")
    for host in cluster.hosts:
        cluster.wait_for_host(host)


def queue(cluster: Cluster) -> str:
    return cluster.run("squeue", "--noheader").stdout


def submit(cluster: Cluster, folder: Path, script: str, *options: str) -> int:
    file = folder / "job.sh"
    file.write_text(f"#!/bin/sh\n{script}\n")
    result = cluster.run("sbatch", "--parsable", "--output=%j.out", *options, str(file), cwd=folder)
    return int(result.stdout)


def accounting(cluster: Cluster, job_id: int, field: str) -> str:
    command = ("sacct", "--allocations", "--noheader", "--parsable2", f"--jobs={job_id}", f"--format={field}")
    return cluster.run(*command).stdout.strip()


def test_four_hosts_run_a_step(cluster: Cluster) -> None:
    """Not that sinfo calls them idle: it may lag behind the jobs of other tests by minutes."""
    assert len(cluster.hosts) == 4
    assert sorted(cluster.run("srun", "--nodes=4", "hostname").stdout.split()) == sorted(cluster.hosts)


def test_each_task_sees_the_gpus_that_its_host_granted(cluster: Cluster) -> None:
    report = 'echo "$(hostname) $SLURM_PROCID $SLURM_LOCALID $CUDA_VISIBLE_DEVICES"'
    shape = ("--nodes=2", "--ntasks-per-node=2", "--gres=gpu:2")
    result = cluster.run("srun", *shape, "sh", "-c", report)
    lines = sorted((line.split() for line in result.stdout.splitlines()), key=lambda words: int(words[1]))
    first, second = lines[0][0], lines[2][0]
    assert lines == [
        [first, "0", "0", "0,1"],
        [first, "1", "1", "0,1"],
        [second, "2", "0", "0,1"],
        [second, "3", "1", "0,1"],
    ]
    assert first != second
    assert {first, second} < set(cluster.hosts)


def test_gpus_in_use_are_not_granted_twice(cluster: Cluster, tmp_path: Path) -> None:
    host = cluster.hosts[0]
    other = submit(cluster, tmp_path, "sleep 60", f"--nodelist={host}", "--gres=gpu:3")
    cluster.wait_for_state(other, "RUNNING")
    result = cluster.run(
        "srun", f"--nodelist={host}", "--gres=gpu:1", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES"
    )
    assert result.stdout.strip() == "3"


def test_accounting_knows_a_finished_job(cluster: Cluster, tmp_path: Path) -> None:
    job_id = submit(cluster, tmp_path, "true", "--job-name=a name with spaces")
    assert cluster.wait_for_state(job_id, "COMPLETED")["JobName"] == "a name with spaces"
    # Accounting is told some time after the job has ended.
    wait_until(
        lambda: accounting(cluster, job_id, "State,Account") == f"COMPLETED|{ACCOUNT}",
        complaint=lambda: accounting(cluster, job_id, "State,Account"),
    )


@pytest.mark.slow
def test_an_urgent_job_preempts_a_preemptible_one_which_runs_again(cluster: Cluster, tmp_path: Path) -> None:
    script = """
        echo "restarts ${SLURM_RESTART_COUNT-unset}" >> starts
        test -n "$SLURM_RESTART_COUNT" && exit
        trap "" TERM
        sleep 100
    """
    everything = ("--nodes=4", "--exclusive")
    victim = submit(cluster, tmp_path, script, "--partition=preemptible0", *everything)
    wait_until((tmp_path / "starts").exists, lambda: f"the job has not begun: {cluster.job(victim)}")
    urgent = submit(cluster, tmp_path, "true", "--partition=urgent", *everything)
    cluster.wait_for_state(urgent, "COMPLETED")
    assert cluster.wait_for_state(victim, "COMPLETED")["Restarts"] == "1"
    assert (tmp_path / "starts").read_text() == "restarts unset\nrestarts 1\n"


@pytest.mark.slow
def test_an_urgent_job_leaves_a_job_in_main_alone(cluster: Cluster, tmp_path: Path) -> None:
    everything = ("--nodes=4", "--exclusive")
    safe = submit(cluster, tmp_path, "sleep 100", *everything)
    cluster.wait_for_state(safe, "RUNNING")
    urgent = submit(cluster, tmp_path, "true", "--partition=urgent", *everything)
    wait_until(
        lambda: cluster.job(urgent)["Reason"] == "Resources", lambda: f"not considered: {cluster.job(urgent)}"
    )
    assert cluster.job(safe)["JobState"] == "RUNNING"


@pytest.mark.slow
def test_the_job_of_a_dead_host_comes_back_on_another(cluster: Cluster, tmp_path: Path) -> None:
    job_id = submit(cluster, tmp_path, "sleep 100", "--requeue")
    host = cluster.wait_for_state(job_id, "RUNNING")["BatchHost"]
    cluster.kill_host(host)
    wait_until(lambda: cluster.job(job_id)["Restarts"] == "1", lambda: f"not requeued: {cluster.job(job_id)}")
    assert cluster.host_state(host).endswith("*")
    assert cluster.wait_for_state(job_id, "RUNNING")["BatchHost"] != host
    cluster.start_host(host)


@pytest.mark.slow
def test_jobs_survive_a_restart_of_the_controller(cluster: Cluster, tmp_path: Path) -> None:
    job_id = submit(cluster, tmp_path, "sleep 100")
    cluster.wait_for_state(job_id, "RUNNING")
    cluster.stop_controller()
    assert not cluster.is_up()
    cluster.start_controller()
    assert cluster.job(job_id)["JobState"] == "RUNNING"


def test_hosts_reach_each_other_by_name_unless_the_network_is_cut(cluster: Cluster) -> None:
    here, there = cluster.hosts[1:3]

    def reaches() -> bool:
        # Any listener serves, and slurmd is one.
        connect = f"exec 3<>/dev/tcp/{there}/6818"
        return cluster.run_on(here, "timeout", "5", "bash", "-c", connect, check=False).returncode == 0

    assert cluster.run_on(here, "hostname").stdout.strip() == here
    assert reaches()
    cluster.cut_network(there)
    try:
        assert not reaches()
    finally:
        cluster.restore_network(there)
    assert reaches()


@pytest.mark.slow
def test_a_second_cluster_goes_up_and_down_beside_the_first(cluster: Cluster) -> None:
    other = Cluster(cluster.name + "x")
    other.down()  # what a killed test run left
    before = traces(other)
    with other:
        assert sorted(other.run("srun", "--nodes=4", "hostname").stdout.split()) == other.hosts
        assert set(other.addresses.values()).isdisjoint(cluster.addresses.values())
        sleeper = other.run(
            "sbatch", "--parsable", "--nodes=4", "--output=/dev/null", "--wrap=srun sleep 100"
        )
        other.wait_for_state(sleeper.stdout.strip(), "RUNNING")
        assert traces(other) != before
    assert traces(other) == before
    other.down()
    assert cluster.run("srun", "hostname").stdout.strip() in cluster.hosts


def traces(cluster: Cluster) -> dict[str, object]:
    """Return everything on this machine that bears the cluster's name."""
    namespaces = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True).stdout
    links = subprocess.run(["ip", "-json", "link"], capture_output=True, text=True, check=True).stdout
    return {
        "processes": [pid for pid in processes() if mentions(pid, str(cluster.state.path))],
        "namespaces": [line for line in namespaces.splitlines() if f"stk-{cluster.name}-" in line],
        "links": [link["ifname"] for link in json.loads(links) if link["ifname"] == f"stk-{cluster.name}"],
        "host names": [
            line for line in hosts_file.HOSTS_FILE.read_text().splitlines() if cluster.name in line
        ],
        "mounts": [
            line for line in Path("/proc/self/mounts").read_text().splitlines() if cluster.name in line
        ],
        "state folder": cluster.state.exists(),
    }


def processes() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def mentions(pid: int, text: str) -> bool:
    """Say whether the process carries `text` in its command or environment, as all of a cluster's do."""
    try:
        return any(
            text.encode() in Path(f"/proc/{pid}/{file}").read_bytes() for file in ("cmdline", "environ")
        )
    except OSError:
        return False


def test_the_cluster_of_a_living_process_is_not_taken_away(cluster: Cluster) -> None:
    second = Cluster(cluster.name)
    with pytest.raises(ClusterError, match="belongs to a running process"):
        second.up()
    assert second.is_up()
    third = Cluster.with_free_name(cluster.name)
    assert third.name != cluster.name
    third.down()


def test_a_failing_command_is_shown_with_what_it_said(cluster: Cluster) -> None:
    with pytest.raises(CommandFailed, match="Invalid job id"):
        cluster.job(10_000_000)


@pytest.mark.parametrize("name", ["", "Tests", "a-b", "../x", "elevenchars"])
def test_a_name_that_cannot_serve_is_refused(name: str) -> None:
    with pytest.raises(ClusterError, match="expected a small letter"):
        Cluster(name)
