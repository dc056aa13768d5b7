"""What is let through runs, and what is refused would have been refused or waited for ever."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from slurm.client import programs
from slurm.client.queue import poll
from slurm.config.resources import Resources
from slurm.submission.batch.job_options import components
from slurm.submission.checks.preflight import check_fits, read_facts
from toolkit.errors import SlurmRefused

from .cluster import Cluster
from .waiting import wait_until

pytestmark = pytest.mark.usefixtures("on_the_login_node")


def _what_slurm_does(resources: Resources, folder: Path) -> str:
    """`runs`, `waits for ever` or `refuses`."""
    script = folder / "job.sh"
    script.write_text("#!/bin/sh\ntrue\n")
    options = [f"--{name}={value}" for name, value in components(resources)[0].options.items()]
    try:
        job_id = programs.sbatch(script, folder, options=["--output=/dev/null", *options])
    except SlurmRefused:
        return "refuses"
    wait_until(
        lambda: poll([job_id])[job_id].advice != "" or poll([job_id])[job_id].is_terminal,
        lambda: str(poll([job_id])),
    )
    ran = poll([job_id])[job_id].state == "finished"
    programs.cancel(job_id)
    return "runs" if ran else "waits for ever"


@pytest.mark.parametrize(
    "resources",
    [
        {"nodes": 4, "tasks_per_node": 8, "time": "60"},
        {"nodes": 4, "gres": "gpu:4", "mem": "64000M"},
        {"nodes": 2, "tasks_per_node": 4, "gpus_per_task": "1", "cpus_per_task": 2},
        {"partition": "preemptible", "account": "research", "time": "59:30"},
        {"mem_per_cpu": "60000M", "cpus_per_task": 2},
    ],
)
def test_accepted_resources_run(tmp_path: Path, resources: dict[str, Any]) -> None:
    asked = Resources(**resources)
    assert check_fits(asked, read_facts(asked)) == []
    assert _what_slurm_does(asked, tmp_path) == "runs"


@pytest.mark.parametrize(
    "resources",
    [
        {"time": "61"},
        {"time": "UNLIMITED"},
        {"nodes": 5},
        {"partition": "mian"},
        {"gres": "gpu:5"},
        {"gres": "gpu:a100:1"},
        {"gpus_per_task": "1", "tasks_per_node": 5, "cpus_per_task": 1},
        {"tasks_per_node": 9},
        {"tasks_per_node": 3, "cpus_per_task": 3},
        {"mem": "64001M"},
        {"mem_per_cpu": "65G"},
        {"constraint": "a100"},
        {"nodelist": "nowhere"},
        {"exclude": "nowhere"},
    ],
)
def test_refused_resources_would_not_have_run(tmp_path: Path, resources: dict[str, Any]) -> None:
    asked = Resources(**resources)
    assert len(check_fits(asked, read_facts(asked))) == 1
    assert _what_slurm_does(asked, tmp_path) in ("refuses", "waits for ever")


def test_too_few_hosts_after_exclusion_are_refused(cluster: Cluster, tmp_path: Path) -> None:
    asked = Resources(nodes=3, exclude=",".join(cluster.hosts[:2]))
    assert len(check_fits(asked, read_facts(asked))) == 1
    assert _what_slurm_does(asked, tmp_path) in ("refuses", "waits for ever")
