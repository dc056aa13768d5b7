"""A run of the user's own functions, beside the folder in which the user edits them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolkit.workloads.custom.own_digits import write_digits
from toolkit.config import load
from toolkit.config.schema import Experiment
from toolkit.run.create_run import create_run
from toolkit.run.run_dir import RunDir

Begun = tuple[RunDir, Experiment]


@pytest.fixture
def begun(tmp_path: Path) -> Begun:
    """A run of three functions with its code, beside the folder in which the user works."""
    experiment = load(write_digits(tmp_path / "work"))
    return create_run(experiment, tmp_path / "runs"), experiment


def edit(tmp_path: Path, name: str, text: str = "# edited\n") -> None:
    file = tmp_path / "work" / name
    file.write_text((file.read_text() if file.exists() else "") + text)
