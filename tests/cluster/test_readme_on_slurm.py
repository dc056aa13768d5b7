"""The README's commands that need Slurm, word for word on the real cluster."""

from __future__ import annotations

import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.docs import readme
from tests.docs.readme import ROOT
from tests.support.registering import own_environment
from toolkit.files import read_json, read_json_lines
from toolkit.run.run_dir import RunDir, find_runs

from .cluster import Cluster
from .machine import hosts_file
from .machine.programs import output_of
from .product.user import ENDED

pytestmark = pytest.mark.slow


@dataclass(frozen=True, slots=True)
class LoginNode:
    """A shell on the cluster, in a folder with the experiments and small data."""

    cluster: Cluster
    home: Path

    def run(self, command: str) -> str:
        """Run a command; return what it printed, or fail with all of it."""
        own = own_environment()
        environment = {
            **own,
            **self.cluster.environment,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{own['PATH']}",
            "PYTHONPATH": str(ROOT),
            "STK_DATA_DIR": str(self.home / "data"),
        }
        return readme.typed(command, self.home, environment)

    def only_run(self, name: str) -> RunDir:
        (run,) = (run for run in find_runs(self.home / "experiments") if run.run_id.startswith(f"{name}-"))
        return run


@pytest.fixture(scope="module")
def login_node(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> LoginNode:
    home = tmp_path_factory.mktemp("login")
    for folder in ("configs", "scripts"):
        shutil.copytree(ROOT / folder, home / folder)
    # The GPUs that this cluster grants are pretended.
    quick = home / "configs" / "quickstart.yaml"
    quick.write_text(re.sub(r"^train:\n", "train:\n  device: cpu\n", quick.read_text(), flags=re.M))
    assert "device: cpu" in quick.read_text()
    (home / "data").mkdir()
    (home / "data" / "movie_reviews.tsv").write_text(readme.small_table(), encoding="utf-8")
    return LoginNode(cluster, home)


@pytest.fixture(scope="module")
def jobs(login_node: LoginNode) -> dict[str, str]:
    """All jobs, submitted one after the other: name and id."""
    found = {}
    for claim in readme.JOBS:
        command = readme.command(claim)
        (job_id,) = re.findall(r"job +(\d+)", login_node.run(command))
        found[command.partition(" name=")[2].split()[0]] = job_id
    return found


@pytest.mark.parametrize("name, tasks", [("even", [2, 2]), ("uneven", [2, 1]), ("script", [2, 2])])
def test_a_job_trains_on_two_hosts(
    login_node: LoginNode, jobs: dict[str, str], name: str, tasks: list[int]
) -> None:
    state = login_node.cluster.wait_for_state(jobs[name], ENDED)["JobState"]
    run = login_node.only_run(name)
    logs = "\n".join(path.read_text() for path in [*run.logs.iterdir(), *login_node.home.glob("slurm-*.out")])
    assert (state, run.result.exists()) == ("COMPLETED", True), logs
    (ranks,) = ([*read_json_lines(path)] for path in (run.path / "ranks").glob("*[0-9].jsonl"))
    hosts = [rank["host"] for rank in ranks]
    assert [hosts.count(host) for host in dict.fromkeys(hosts)] == tasks
    assert all(rank["cuda_visible_devices"] for rank in ranks)


def test_custom_task_trains_as_a_job_of_four_ranks(login_node: LoginNode) -> None:
    init, _, submit = readme.FIRST
    printed = login_node.run(f"{readme.command(init)} && {readme.command(submit)}")
    (job_id,) = re.findall(r"job +(\d+)", printed)
    state = login_node.cluster.wait_for_state(job_id, ENDED)["JobState"]
    (run,) = find_runs(login_node.home / "digits" / "experiments")
    assert state == "COMPLETED", "\n".join(path.read_text() for path in run.logs.iterdir())
    assert next(iter(read_json_lines(run.attempts)))["world_size"] == 4


@pytest.mark.parametrize("claim, name, size", [("srun -n 4", "tasks", 4), ("salloc", "shell", 2)])
def test_foreground_commands_train(login_node: LoginNode, claim: str, name: str, size: int) -> None:
    assert claim in readme.IN_THE_FOREGROUND
    login_node.run(readme.command(claim))
    run = login_node.only_run(name)
    assert read_json(run.result)["state"] == "finished"
    assert next(iter(read_json_lines(run.attempts)))["world_size"] == size


def test_own_test_cluster_goes_up_and_down_beside_another_and_leaves_no_trace(cluster: Cluster) -> None:
    """Under another name, because somebody may have one up by hand; the fixture asks whether one can run."""
    other = Cluster(cluster.name + "x")
    up, shell, down = (f"{readme.command(each)} --name {other.name}" for each in readme.OWN_CLUSTER)
    other.down()  # what a killed test run left
    before = traces(other)
    try:
        assert f"{other.name}-4" in _by_hand(up)
        typed = f"printf 'srun -N4 hostname\\nexit\\n' | {shell}"
        assert set(other.hosts) <= set(_by_hand(typed).split())
        assert set(other.addresses.values()).isdisjoint(cluster.addresses.values())
        sleeper = other.run(
            "sbatch", "--parsable", "--nodes=4", "--output=/dev/null", "--wrap=srun sleep 100"
        )
        other.wait_for_state(sleeper.stdout.strip(), "RUNNING")
        assert traces(other) != before
    finally:
        assert "is down" in _by_hand(down)
    assert traces(other) == before
    assert cluster.run("srun", "hostname").stdout.strip() in cluster.hosts


def traces(cluster: Cluster) -> dict[str, object]:
    """Return everything on this machine that bears the cluster's name."""

    def naming(text: str) -> list[str]:
        return [line for line in text.splitlines() if cluster.name in line]

    processes = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    return {
        "processes": [pid for pid in processes if mentions(pid, str(cluster.state.path))],
        "namespaces": naming(output_of(["ip", "netns", "list"])),
        "links": naming(output_of(["ip", "-oneline", "link"])),
        "host names": naming(hosts_file.HOSTS_FILE.read_text()),
        "mounts": naming(Path("/proc/self/mounts").read_text()),
        "state folder": cluster.state.exists(),
    }


def mentions(pid: int, text: str) -> bool:
    """Say whether the process carries `text` in its command or environment, as all of a cluster's do."""
    try:
        return any(
            text.encode() in Path(f"/proc/{pid}/{file}").read_bytes() for file in ("cmdline", "environ")
        )
    except OSError:
        return False


def _by_hand(command: str) -> str:
    return readme.typed(command, ROOT, {**os.environ, "SHELL": "/bin/bash"})
