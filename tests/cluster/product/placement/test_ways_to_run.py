"""Two processes of one host in allocations, shells and steps of Slurm, and under torchrun: the same bytes."""

from __future__ import annotations

import os
import pty
import select
import time

import pytest

from tests.cluster.product.user import User, assert_same_training, host_numbers, ranks, starts
from tests.support.patience import PATIENCE_S
from toolkit.run.run_dir import RunDir, find_runs

TWO_HERE = "resources.tasks_per_node=2"


def assert_trained(user: User, run: RunDir, alone: RunDir, *, is_job: bool) -> None:
    """Two processes of one host have trained to the same bytes as one alone.

    is_job   whether the ranks are Slurm's, else processes that know nothing of Slurm
    """
    found = ranks(run)
    assert host_numbers(run) == [0, 0]
    assert [rank["local_rank"] for rank in found] == [0, 1]
    assert {rank["world_size"] for rank in found} == {2}
    pids = {rank["pid"] for rank in found}
    environments = [environment for pid, environment in user.environments().items() if pid in pids]
    assert len(environments) == 2
    assert {"SLURM_JOB_ID" in environment for environment in environments} == {is_job}
    assert len(starts(run)) == 1
    assert_same_training(run, alone)


@pytest.mark.slow
def test_torchrun_in_an_allocation_trains_to_the_same_weights(user: User, quick_alone: RunDir) -> None:
    torchrun = ("torchrun", "--nproc-per-node", "2", "-m", "toolkit.training.worker", "quick.yaml")
    user.run("salloc", "--ntasks=1", *torchrun, env={"PYTHONPATH": str(user.install_probe())})
    assert_trained(user, user.only_run(), quick_alone, is_job=True)


@pytest.mark.slow
def test_step_that_is_forced_to_be_local_trains_to_the_same_weights(user: User, quick_alone: RunDir) -> None:
    env = {"PYTHONPATH": str(user.install_probe()), "STK_FORCE_LOCAL": "Yes"}
    user.run("srun", "--ntasks=1", "stk", "run", "quick.yaml", TWO_HERE, env=env)
    assert_trained(user, user.only_run(), quick_alone, is_job=False)


def test_shell_of_srun_pty_is_not_a_rank(user: User, quick_alone: RunDir) -> None:
    """Its SLURM_* variables name a step of one task. They shape neither what is trained there, which are two
    processes of that host, nor a job that is submitted from there.
    """
    observed = {"PYTHONPATH": str(user.install_probe())}
    typed = (
        f"stk run quick.yaml {TWO_HERE} && stk submit quick.yaml name=other {TWO_HERE}; echo code $?; exit\n"
    )
    screen = _type(user, ["srun", "--ntasks=1", "--pty", "bash", "--norc"], typed, observed)
    assert "code 0" in screen, screen
    other, here = find_runs(user.runs)
    assert_trained(user, here, quick_alone, is_job=False)
    assert ranks(here)[0]["host"] in user.cluster.hosts
    user.wait_until_finished(other, user.status(other)["job_id"])
    assert_trained(user, other, quick_alone, is_job=True)


def _type(user: User, command: list[str], typed: str, env: dict[str, str]) -> str:
    """Run a command on a terminal of its own, type something, and return what the terminal showed."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(user.home)
        os.execvpe(command[0], command, user.environment | env | {"TERM": "dumb"})
    os.write(terminal, typed.encode())
    shown, deadline = b"", time.monotonic() + PATIENCE_S
    try:
        while select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))[0]:
            try:
                shown += os.read(terminal, 4096)
            except OSError:  # Linux's way to say that nobody is left at the other end
                break
    finally:
        os.close(terminal)  # hangs up, so that a command that is still there ends
        os.waitpid(pid, 0)
    return shown.decode(errors="replace")
