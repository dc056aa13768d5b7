"""A run's folder, empty and with checkpoints, a folder that users share, and runs of the tiny experiment.

A test file with other wishes has its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from tests.toolkit.support.checkpointing import save
from toolkit.run.run_dir import RunDir

if TYPE_CHECKING:
    from tests.toolkit.support.tiny_training import Lab


@pytest.fixture
def threads_restored() -> Iterator[None]:
    """For what sets the threads of its process."""
    import torch  # not for tests that do without

    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that everybody may write; only its owner may enter those around `tmp_path`."""
    with TemporaryDirectory() as name:
        os.chmod(name, 0o777)
        yield Path(name)


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


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """Runs that the tests of one file share."""
    from tests.toolkit.support.tiny_training import Lab  # imports torch

    return Lab(tmp_path_factory.mktemp("lab"))
