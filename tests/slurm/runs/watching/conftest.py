"""What the tests of views share."""

from __future__ import annotations

import os
import pty
from collections.abc import Iterator

import pytest

from tests.slurm.runs.watching.terminals import Terminal


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    fingers, keys = pty.openpty()
    yield Terminal(fingers, keys)
    os.close(fingers)
    os.close(keys)
