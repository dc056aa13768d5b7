"""Finished runs in this process: a copy to be changed, and the texts of test sets."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.toolkit.support.tiny import query
from toolkit.config import load_resolved
from toolkit.run.run_dir import RunDir
from toolkit.workloads.spelling.data.samples.prepared import prepare


@pytest.fixture(autouse=True)
def threads(threads_restored: None) -> None:
    """Runs that are trained here set the threads of this process."""


@pytest.fixture
def copy(of_words: RunDir, tmp_path: Path) -> RunDir:
    return RunDir(shutil.copytree(of_words.path, tmp_path / of_words.run_id, symlinks=True))


def texts_of_test(run: RunDir) -> list[str]:
    """Return the texts of a run's test set, with their errors."""
    data = prepare(load_resolved(run.config).data)
    statement = "SELECT text FROM samples WHERE split = 'test' ORDER BY sample_id"
    return [text for (text,) in query(data, statement)]
