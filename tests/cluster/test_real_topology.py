"""Every process that a real cluster starts finds its place."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from .cluster import Cluster

REPOSITORY = Path(__file__).parents[2]

#: Writes what this process finds out to PREFIX.RANK.json, PREFIX being its argument.
PROBE = """
import json, os, sys
from dataclasses import asdict
from slurm.client.topology import how_started, world_from_step
start = how_started()
world = asdict(world_from_step()) if start == "rank" else {}
found = {"start": start, "host": os.environ.get("SLURMD_NODENAME"), **world}
name = f"{sys.argv[1]}.{os.environ['SLURM_JOB_ID']}.{world.get('rank', 'shell')}.json"
with open(name + ".tmp", "w") as file:
    json.dump(found, file)
os.rename(name + ".tmp", name)
"""


class Probe:
    """Runs the probe on the cluster and collects what its processes found."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        script = folder / "probe.py"
        script.write_text(PROBE)
        self.environment = {"PYTHONPATH": str(REPOSITORY), "PATH": os.environ["PATH"]}
        self._program = [sys.executable, str(script)]

    def command(self, name: str) -> list[str]:
        return [*self._program, str(self.folder / name)]

    def shell(self, name: str) -> str:
        """The command as a line of a shell script."""
        return shlex.join(self.command(name))

    def submit(self, script: str, *options: str) -> str:
        file = self.folder / "job.sh"
        file.write_text(f"#!/bin/bash\n{script}\n")
        fixed = ("sbatch", "--parsable", "--wait", "--output=%j.out", "--open-mode=append")
        result = self.cluster.run(*fixed, *options, str(file), env=self.environment, cwd=self.folder)
        return result.stdout.strip()

    def found(self, name: str) -> list[dict[str, Any]]:
        """What the processes of one probe found, by rank."""
        files = self.folder.glob(f"{name}.*.json")
        return sorted(
            (json.loads(file.read_text()) for file in files), key=lambda found: found.get("rank", -1)
        )


@pytest.fixture
def probe(cluster: Cluster, tmp_path: Path) -> Probe:
    return Probe(cluster, tmp_path)


def _assert_one_world(ranks: list[dict[str, Any]], size: int, hosts: int) -> None:
    """Ranks, local ranks and hosts are counted without a gap, and everybody agrees on the whole."""
    assert [found["rank"] for found in ranks] == list(range(size))
    assert {found["start"] for found in ranks} == {"rank"}
    assert {(found["size"], found["nodes"]) for found in ranks} == {(size, hosts)}
    assert len({found["nonce"] for found in ranks}) == 1
    tasks = Counter(found["host"] for found in ranks)
    assert [found["local_size"] for found in ranks] == [tasks[found["host"]] for found in ranks]
    for host, count in tasks.items():
        assert sorted(found["local_rank"] for found in ranks if found["host"] == host) == list(range(count))
    assert len({found["node"] for found in ranks}) == len({(f["node"], f["host"]) for f in ranks}) == hosts


def test_the_components_of_an_uneven_job_form_one_world(probe: Probe) -> None:
    """The larger component is put on the host that comes last by name."""
    last = probe.cluster.hosts[-1]
    script = f"""\
#SBATCH --nodes=1 --ntasks-per-node=3 --gres=gpu:3 --nodelist={last}
#SBATCH hetjob
#SBATCH --nodes=2 --ntasks-per-node=1 --gres=gpu:1 --exclude={last}
{probe.shell("script")}
srun --het-group=0,1 {probe.shell("step")}
"""
    probe.submit(script)
    ranks = probe.found("step")
    _assert_one_world(ranks, size=5, hosts=3)
    assert [found["host"] for found in ranks[:3]] == [last] * 3
    assert [found["start"] for found in probe.found("script")] == ["shell"]
