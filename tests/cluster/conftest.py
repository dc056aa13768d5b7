"""The cluster that all tests in this folder share."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from .cluster import Cluster
from .machine.prerequisites import CannotRunHere, prepare_machine


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # The hook is given the tests of all folders.
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker("cluster")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A running cluster. Where none can run, the test is skipped; in CI, which is there for it, it fails."""
    try:
        prepare_machine()
    except CannotRunHere as reason:
        give_up = pytest.fail if os.environ.get("CI") else pytest.skip
        give_up(str(reason))
    # A free name, because another test run on this machine may have its cluster up now.
    cluster = Cluster.with_free_name("tests")
    cluster.up()
    try:
        yield cluster
    finally:
        cluster.down()


@pytest.fixture
def on_the_login_node(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Slurm's programs, called from this process, ask this cluster."""
    for name in [name for name in os.environ if name.startswith(("SLURM_", "SBATCH_"))]:
        monkeypatch.delenv(name)
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
