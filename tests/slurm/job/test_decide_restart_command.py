"""The command with which the batch script asks what follows the end of a step."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.slurm.support.pretend_job import PretendJob
from tests.slurm.support.user import CODE


def call(job: PretendJob, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "slurm.job.decide_restart", *arguments],
        env={**job.environ, **CODE, "STK_EXPERIMENT_DIR": str(job.user.experiments)},
        cwd=job.user.root,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("what", ["the folder", "the id", "the experiment file"])
def test_command_accepts_the_folder_the_id_or_the_experiment_file(job: PretendJob, what: str) -> None:
    job.stops()
    run = job.run
    names = {"the folder": str(run.path), "the id": run.run_id, "the experiment file": "tiny.yaml"}
    done = call(job, names[what], "75")
    assert (done.returncode, done.stdout) == (0, "stk: the run was stopped: requested\n")
    assert job.requeues == [["requeue", "101"]]


def test_command_reports_errors_without_a_traceback(job: PretendJob) -> None:
    done = call(job, "nosuch", "75")
    assert (done.returncode, done.stderr) == (2, "")
    assert "stk resume" in done.stdout
    assert "no run 'nosuch'" in done.stdout
