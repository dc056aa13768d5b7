"""Run the checks of a machine on a host of the cluster, in a temporary job of one task."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from slurm.client import programs
from slurm.client.topology import scrub
from slurm.config.resources import Resources
from slurm.doctor.cluster import Cluster
from slurm.doctor.partitions import rows
from slurm.submission.batch.job_options import components
from toolkit.files import temporary_folder
from toolkit.monitoring.diagnostics import child_process
from toolkit.monitoring.diagnostics.folder import PREFIX, nearest
from toolkit.monitoring.diagnostics.shared_folder_probe import answer

#: Seconds to wait for a free host, and minutes for the checks on it.
WAIT_S, _MINUTES = 60, 5
_TIMEOUT_S = WAIT_S + 60.0 * _MINUTES + 30.0
#: Options of the experiment's job that decide whether and where a job of one task may run.
_KEPT = ("account", "qos", "reservation", "constraint", "exclude")


def ask_on_host(
    cluster: Cluster, partition: str, resources: Resources, folder: Path
) -> tuple[dict[str, Any], str]:
    """Run the checks on any free host of a partition; exchange files with it through a folder.

    Returns the answers of the host, and srun's error message, empty on success.

    No job stays in the queue: srun gives up if no host is free within WAIT_S seconds, and Slurm removes the
    job by its deadline if this process is killed. Raises SchedulerError for a missing program, and OSError if
    the folder cannot be written.
    """
    name = f"stk-doctor-{uuid4().hex[:8]}"
    with _answering(folder) as exchange:
        # torch last: it takes longest, and the job has a time limit.
        command = child_process.command(["machine", "gpus", f"exchange={exchange}", "torch"])
        output, complaint = programs.step(
            _options(cluster, partition, resources),
            command,
            name=name,
            timeout_s=_TIMEOUT_S,
            env=child_process.environment(scrub()),
        )
    return child_process.read(output), complaint


def _options(cluster: Cluster, partition: str, resources: Resources) -> list[str]:
    options = [
        "--nodes=1",
        "--ntasks=1",
        f"--partition={partition}",
        f"--time={_MINUTES}",
        f"--immediate={WAIT_S}",
        f"--deadline=now+{2 * _MINUTES}minutes",
    ]
    # On some clusters a job sees only its own GPUs, so one is requested.
    if any(row.name == partition and any(row.gpus_free.values()) for row in rows(cluster)):
        options.append("--gres=gpu:1")
    given = components(resources)[0].options
    return options + [f"--{key}={given[key]}" for key in _KEPT if key in given]


@contextmanager
def _answering(parent: Path) -> Iterator[Path]:
    """Yield a hidden folder; a thread answers the other host's files in it."""
    over = threading.Event()
    with temporary_folder(PREFIX, nearest(parent)) as exchange:
        thread = threading.Thread(target=answer, args=(exchange, over), daemon=True)
        thread.start()
        try:
            yield exchange
        finally:
            over.set()
            thread.join(timeout=5)
