"""What the tests of views share."""

from __future__ import annotations

import os
import pty
from collections.abc import Iterator

import pytest

from tests.slurm.fake_slurm import FakeSlurm
from tests.slurm.house import House
from tests.slurm.runs.watching.terminals import Terminal
from tests.slurm.stage import Stage


@pytest.fixture
def stage(fake: FakeSlurm, house: House) -> Stage:
    return Stage(fake, house)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    fingers, keys = pty.openpty()
    yield Terminal(fingers, keys)
    os.close(fingers)
    os.close(keys)
