"""What the tests of the submitter share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from slurm.client.topology import scrub
from tests.slurm.fake_slurm import FakeSlurm
from tests.slurm.house import House
from tests.slurm.stubs import Stubs
from toolkit.config.checking.validate import check
from toolkit.config.schema import Experiment


@pytest.fixture
def stubs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stubs:
    """An empty PATH to put stub programs on: no program of Slurm is found until one is added."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return Stubs(folder)


@pytest.fixture
def fake(stubs: Stubs) -> FakeSlurm:
    """A pretend Slurm, the only programs on PATH."""
    return FakeSlurm(stubs.folder)


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    """A working folder with a small experiment, in a clean environment."""
    kept = scrub(os.environ)
    for name in os.environ:
        if name not in kept or name.startswith("STK_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    house = House(tmp_path)
    monkeypatch.setenv("STK_EXPERIMENT_DIR", str(house.experiments))
    # Tables are as wide as the terminal.
    monkeypatch.setenv("COLUMNS", "200")
    return house


@pytest.fixture
def experiment() -> Experiment:
    """A small experiment, as a value."""
    return check({
        "name": "tiny",
        "task": {"kind": "toy_texts"},
        "model": {"kind": "convolutions"},
        "data": {"path": "/data/reviews.tsv"},
    })  # fmt: skip
