"""What the tests of views share."""

from __future__ import annotations

import os
import pty
from collections.abc import Iterator

import pytest

from tests.slurm.runs.watching.terminals import Terminal
from tests.slurm.support.fake_slurm import FakeSlurm
from tests.slurm.support.pretend_job import PretendJob
from tests.slurm.support.user import User


@pytest.fixture
def job(fake: FakeSlurm, user: User) -> PretendJob:
    return PretendJob(fake, user)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    fingers, keys = pty.openpty()
    yield Terminal(fingers, keys)
    os.close(fingers)
    os.close(keys)
