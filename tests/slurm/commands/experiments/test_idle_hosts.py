"""`stk run` in the shell of an allocation of several hosts says that it takes one of them."""

from __future__ import annotations

import pytest

from slurm.commands.experiments.local_world import told_idle
from tests.slurm.support.environments import ENVIRONMENTS


@pytest.mark.parametrize(
    "name, hosts",
    [
        ("salloc", ("rack1node01", "rack1node02")),
        ("salloc with use_interactive_step", ("rack1node01", "rack1node02")),
        ("batch script of an uneven job", ("rack2node01", "rack1node01", "rack1node02")),
    ],
)
def test_the_hosts_of_the_job_are_named(name: str, hosts: tuple[str, ...]) -> None:
    told = told_idle(ENVIRONMENTS[name])
    assert f"{len(hosts)} hosts" in told
    assert all(host in told for host in hosts)
    assert "srun" in told


@pytest.mark.parametrize(
    "environ",
    [
        *({}, ENVIRONMENTS["srun --pty"], {"SLURM_JOB_NODELIST": "a[1-2]"}),
        {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "a[1-"},  # which cannot be read
    ],
)
def test_nothing_is_shown_for_one_host_or_outside_a_job(environ: dict[str, str]) -> None:
    assert told_idle(environ) == ""
