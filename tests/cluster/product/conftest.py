"""Users of the cluster, and the results of their experiments without interruptions."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster
from toolkit.run.run_dir import RunDir

from .user import User, Users

_WORDS = {"good": ("fine", "bright", "warm"), "bad": ("dull", "poor", "cold")}


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A made-up table of 200 texts, shared by all users."""
    choice = random.Random(0)
    rows = ["text\tlabel"]
    for number in range(200):
        label = choice.choice(list(_WORDS))
        filler = [f"word{choice.randrange(50)}" for _ in range(choice.randrange(2, 10))]
        rows.append(" ".join([*filler, choice.choice(_WORDS[label]), f"text{number}"]) + f"\t{label}")
    path = tmp_path_factory.mktemp("data") / "texts.tsv"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def user(cluster: Cluster, table: Path, tmp_path: Path) -> User:
    return User(cluster, table, tmp_path / "home")


@pytest.fixture(scope="session")
def lone_user(cluster: Cluster, table: Path, tmp_path_factory: pytest.TempPathFactory) -> User:
    return User(cluster, table, tmp_path_factory.mktemp("lone"))


@pytest.fixture(scope="session")
def quick_alone(lone_user: User) -> RunDir:
    """The quick experiment, trained by one local process."""
    return _train_here(lone_user, "quick")


@pytest.fixture(scope="session")
def long_alone(lone_user: User) -> RunDir:
    """The long experiment, trained by one local process without a stop."""
    return _train_here(lone_user, "long")


@pytest.fixture(scope="module")
def users(cluster: Cluster, table: Path, tmp_path_factory: pytest.TempPathFactory) -> Users:
    """Where the tests of one file make their users and runs."""
    return Users(cluster, table, tmp_path_factory.mktemp("users"))


def _train_here(user: User, name: str) -> RunDir:
    return RunDir(Path(user.stk_json("run", f"{name}.yaml", "--procs", "1")["run_dir"]))
