"""A name of the wrong kind is refused with the command that is meant."""

from __future__ import annotations

import pytest

from tests.slurm.support.user import User


@pytest.mark.parametrize("command", ["submit", "plan"])
def test_run_in_place_of_an_experiment_file_is_named(user: User, command: str) -> None:
    run = user.run()
    run.path.mkdir(parents=True)
    run.config.write_text("name: tiny\n")
    for name in (run.run_id, run.path):
        assert f"`stk resume {run.run_id}`" in user.refused(command, name)


def test_experiment_file_in_place_of_a_run_is_named(user: User) -> None:
    assert f"`stk submit {user.config}`" in user.refused("resume", user.config)


@pytest.mark.parametrize("words", [("python", "train.py"), ("my", "experiment.yaml")])
def test_command_without_its_two_dashes_is_named(user: User, words: tuple[str, str]) -> None:
    assert "-- python train.py" in user.refused("run", *words)
