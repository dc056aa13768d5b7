"""A run of an earlier version goes on as a job: today's batch script, its own code."""

from __future__ import annotations

import pytest

from tests.cluster.product.user import User
from tests.old_runs.experiments import write
from tests.old_runs.unpacking import archives, digests, unpack
from toolkit.files import read_json
from toolkit.run.run_dir import RunDir

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("version", archives())
def test_a_run_that_was_interrupted_is_resumed_as_a_job(user: User, version: str) -> None:
    old = unpack(version, user.home)
    run = old.interrupted
    # A job works in the run's folder, and the run's data are in the working folder.
    write(run.path)
    answer = user.stk_json("resume", run.run_id, "--cluster", "slurm")
    user.wait_until_finished(run, answer["job_id"])
    assert (read_json(run.result)["step"], user.status(run)["restarts"]) == (16, 1)
    assert digests(run) == digests(resumed_here(user, version))


def resumed_here(user: User, version: str) -> RunDir:
    """The same run, resumed by one local process."""
    home = user.home / "here"
    home.mkdir()
    run = unpack(version, home).interrupted
    own = {"STK_EXPERIMENT_DIR": str(run.path.parent)}
    user.run("stk", "run", run.run_id, "--procs", "1", cwd=home, env=own)
    return run
