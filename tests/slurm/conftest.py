"""What the tests of the submitter share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from slurm.client.topology import scrub
from tests.slurm.support.clock import Clock
from tests.slurm.support.fake_slurm import FakeSlurm
from tests.slurm.support.pretend_job import PretendJob
from tests.slurm.support.stubs import Stubs
from tests.slurm.support.user import User
from toolkit.config.checking.validate import check
from toolkit.config.schema import Experiment
from toolkit.run.create_run import create_run
from toolkit.run.run_dir import RunDir


@pytest.fixture
def stubs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stubs:
    """An empty PATH to put stub programs on: no program of Slurm is found until one is added."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return Stubs(folder)


@pytest.fixture
def fake(stubs: Stubs) -> FakeSlurm:
    """A pretend Slurm, the only programs on PATH."""
    return FakeSlurm(stubs.folder)


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> User:
    """A user with a small experiment, in a clean environment."""
    kept = scrub(os.environ)
    for name in os.environ:
        if name not in kept or name.startswith("STK_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    user = User(tmp_path)
    monkeypatch.setenv("STK_EXPERIMENT_DIR", str(user.experiments))
    # Tables are as wide as the terminal.
    monkeypatch.setenv("COLUMNS", "200")
    return user


@pytest.fixture
def run(user: User) -> RunDir:
    """A run of the user that has not started."""
    return create_run(user.experiment(), user.experiments)


@pytest.fixture
def job(fake: FakeSlurm, user: User) -> PretendJob:
    """A submitted job of the user's, and its run."""
    return PretendJob(fake, user)


@pytest.fixture
def nfs(monkeypatch: pytest.MonkeyPatch) -> None:
    """NFS renames a deleted file that is open in this process, so that its folder is not empty."""
    delete = os.unlink

    def unlink(path: str | Path, *, dir_fd: int | None = None) -> None:
        around = "" if dir_fd is None else os.readlink(f"/proc/self/fd/{dir_fd}")
        file = Path(around, path).absolute()
        opened = (os.path.realpath(each) for each in Path("/proc/self/fd").iterdir())
        if str(file) in opened:
            file.rename(file.with_name(f".nfs{file.name}"))
        else:
            delete(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", unlink)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def experiment() -> Experiment:
    """A small experiment, as a value."""
    return check({
        "name": "tiny",
        "task": {"kind": "toy_texts"},
        "model": {"kind": "convolutions"},
        "data": {"path": "/data/reviews.tsv"},
    })  # fmt: skip
