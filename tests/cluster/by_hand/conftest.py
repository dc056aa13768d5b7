"""Two machines that all tests of a module share, and the run that theirs are compared with."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.cluster.machine.prerequisites import CannotRunHere, require_linux_and_root
from tests.toolkit.support.tiny import write_experiment
from toolkit.run.run_dir import RunDir

from .two_machines import Pair, ended, two_machines


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    try:
        require_linux_and_root()
    except CannotRunHere as reason:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(str(reason))
    folder = tmp_path_factory.mktemp("machines")
    with two_machines(folder) as (first, second):
        yield Pair(first, second, write_experiment(folder / "data"))


@pytest.fixture(scope="module")
def alone(machines: Pair, tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    """The experiment, trained by one process without any disturbance."""
    machine = replace(machines.first, home=tmp_path_factory.mktemp("alone"))
    ((code, _),) = ended([machine.start("run", machines.config, "--procs", 1)])
    assert code == 0
    return machine.run
