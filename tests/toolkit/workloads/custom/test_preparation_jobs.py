"""`stk prepare --cluster slurm` of the user's own code: a job only if there is something to prepare."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm.support.fake_slurm import FakeSlurm
from tests.slurm.support.user import User, user_in
from tests.toolkit.workloads.custom.own_digits import DIGITS, write_digits

PREPARE = ("prepare", "digits.yaml", "--cluster", "slurm", "--cpus", "2")


@pytest.fixture
def fake(tmp_path: Path) -> FakeSlurm:
    """A pretend Slurm in the folder of a project of three functions."""
    write_digits(tmp_path / "project")
    return FakeSlurm(tmp_path / "project")


@pytest.fixture
def user(fake: FakeSlurm, tmp_path: Path) -> Iterator[User]:
    with user_in(tmp_path / "project") as user:
        yield user


def test_functions_without_prepare_queue_no_job(user: User, fake: FakeSlurm) -> None:
    assert "nothing is prepared" in user.told(*PREPARE)
    assert fake.jobs == []


def test_a_command_queues_no_job(user: User, fake: FakeSlurm) -> None:
    user.write("digits.yaml", "name: own\ntask: {kind: command, run: [hostname]}\n")
    assert "no data that are prepared" in user.refused(*PREPARE)
    assert fake.jobs == []


def test_the_function_prepare_is_called_in_a_job(user: User) -> None:
    user.write("digits.py", f"{DIGITS}\n\ndef prepare():\n    pass\n")
    assert json.loads(user.told(*PREPARE, "--json"))["job_id"] == "101"
