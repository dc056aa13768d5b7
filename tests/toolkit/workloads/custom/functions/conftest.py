"""A user's project, whose modules are forgotten before and after each test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.toolkit.workloads.custom.own_digits import write_digits


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The experiment file of the project."""
    monkeypatch.chdir(tmp_path)
    paths = list(sys.path)
    # Tests of other files import modules of these names too.
    _forget()
    yield write_digits(tmp_path / "project")
    sys.path[:] = paths
    _forget()


def _forget() -> None:
    for name in list(sys.modules):
        if name.startswith(("digits", "my_project")):
            del sys.modules[name]
