"""The cluster behaves like a cluster: what the other tests build on."""

import json
import subprocess
from pathlib import Path

import pytest

from .cluster import Cluster
from .errors import ClusterError, CommandFailed
from .machine import hosts_file


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


def test_cluster_of_a_running_process_cannot_be_taken_over(cluster: Cluster) -> None:
    second = Cluster(cluster.name)
    with pytest.raises(ClusterError, match="belongs to a running process"):
        second.up()
    assert second.is_up()
    third = Cluster.with_free_name(cluster.name)
    assert third.name != cluster.name
    third.down()


def test_error_of_a_failing_command_shows_its_output(cluster: Cluster) -> None:
    with pytest.raises(CommandFailed, match="Invalid job id"):
        cluster.job(10_000_000)


@pytest.mark.parametrize("name", ["", "Tests", "a-b", "../x", "elevenchars"])
def test_invalid_cluster_name_is_refused(name: str) -> None:
    with pytest.raises(ClusterError, match="expected a small letter"):
        Cluster(name)
