"""A run's folder, empty and with checkpoints; a test file with other wishes has its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.toolkit.checkpointing import save
from toolkit.run.run_dir import RunDir


@pytest.fixture
def threads_restored() -> Iterator[None]:
    """For what sets the threads of its process."""
    import torch  # not for tests that do without

    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    run = RunDir(tmp_path / "run")
    run.path.mkdir()
    return run


@pytest.fixture
def saved(run: RunDir) -> RunDir:
    """With checkpoints of step 10, which is the best, and of step 20."""
    save(run, 10, 20, best=10)
    return run
