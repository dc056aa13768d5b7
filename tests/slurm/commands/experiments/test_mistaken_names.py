"""A name of the wrong kind is refused with the command that is meant."""

from __future__ import annotations

import pytest

from tests.slurm.status.folders import new_run
from tests.slurm.support.user import User


@pytest.mark.parametrize("command", ["submit", "plan"])
def test_run_in_place_of_an_experiment_file_is_named(user: User, command: str) -> None:
    run = new_run(user.experiments)
    for name in (run.run_id, run.path):
        assert f"`stk resume {run.run_id}`" in user.refused(command, name)
    for other in (f"elsewhere/{run.run_id}", f"configs/{run.run_id}.yaml"):
        assert "stk resume" not in user.refused(command, other)


def test_experiment_file_in_place_of_a_run_is_named(user: User) -> None:
    assert f"`stk submit {user.config}`" in user.refused("resume", user.config)


def test_word_that_is_no_run_gets_the_ways_to_name_an_experiment(user: User) -> None:
    assert "-- and a command" in user.refused("run", "my", "experiment.yaml")


def test_name_of_two_runs_is_no_command(user: User) -> None:
    for name in ("tiny-a", "tiny-b"):
        new_run(user.experiments, name)
    said = user.refused("run", "tiny")
    assert "tiny-a, tiny-b" in said
    assert "(" not in said
