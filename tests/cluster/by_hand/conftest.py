"""Two machines that all tests of a module share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.cluster.prerequisites import CannotRunHere, require_linux_and_root
from tests.toolkit.tiny import write_experiment

from .two_machines import Pair, two_machines


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    try:
        require_linux_and_root()
    except CannotRunHere as reason:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(str(reason))
    folder = tmp_path_factory.mktemp("machines")
    with two_machines(folder) as (first, second):
        yield Pair(first, second, write_experiment(folder / "data"))
