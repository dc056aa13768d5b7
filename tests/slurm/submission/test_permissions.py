"""What a umask of 077 promises: no other user reads anything of a run. What is shared stays shared."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm.support.fake_slurm import FakeSlurm
from tests.slurm.support.user import User
from toolkit.run.create_run import create_run
from toolkit.run.run_dir import RunDir


@pytest.fixture(autouse=True)
def private() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


def is_open(path: Path) -> bool:
    """Whether its mode gives others any right."""
    return path.stat().st_mode & 0o077 != 0


def open_in(run: RunDir) -> list[Path]:
    """What is open in a folder; copied code has its source's modes, and lies in a closed folder."""
    return [
        path for path in [run.path, *run.path.rglob("*")] if is_open(path) and run.code not in path.parents
    ]


def test_run_and_prepared_data_are_private(user: User) -> None:
    answer = user.call("run", user.config)
    assert answer.code == 0, answer.err
    assert open_in(user.run()) == []
    assert not is_open(user.experiments)
    assert not is_open(user.root / "prepared")


def test_submission_is_private(user: User, fake: FakeSlurm) -> None:
    assert user.stk("submit", user.config).code == 0
    assert open_in(user.run()) == []


@pytest.mark.parametrize("name", ["old", "sweeps", "preparations"])
def test_folder_beside_the_runs_is_shared_as_the_folder_of_runs_is(
    user: User, fake: FakeSlurm, name: str
) -> None:
    """The first user who needs the folder makes it, with any umask."""
    user.experiments.mkdir()
    user.experiments.chmod(0o2775)
    if name == "old":
        create_run(user.experiment(), user.experiments)
    words = {
        "old": ["submit", user.config, "--fresh"],
        "sweeps": ["sweep", user.config, "seed=1,2"],
        "preparations": ["prepare", user.config, "--cluster", "slurm"],
    }
    assert user.stk(*words[name]).code == 0
    assert stat.S_IMODE((user.experiments / name).stat().st_mode) == 0o2775
