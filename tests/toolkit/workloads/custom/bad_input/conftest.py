"""A good file of functions, a good command, and an experiment of each, for a test to spoil."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from slurm.cli import main
from tests.toolkit.workloads.custom.own_digits import POINTS
from toolkit.exit_codes import ExitCode

_YAML = "name: mine\ntask: mine.py\ntrain: {epochs: 1, batch_size: 8}\n"
_COMMAND = "name: mine\ntask: {kind: command, run: [python, train.py]}\n"
#: Lines of the functions in mine.py, and of one that a test adds.
MODEL, DATA, STEP, ADDED = 6, 10, 15, 20

Refused = Callable[..., str]


@pytest.fixture(autouse=True)
def here(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working folder has a good file, a good command and an experiment of each."""
    monkeypatch.setenv("STK_EXPERIMENT_DIR", str(empty_folder / "experiments"))
    for name, text in {"mine.py": POINTS, "mine.yaml": _YAML, "train.py": "", "train.yaml": _COMMAND}.items():
        (empty_folder / name).write_text(text)
    (empty_folder / "program").touch()


@pytest.fixture
def refused(capfd: pytest.CaptureFixture[str]) -> Refused:
    """The error of a command that is refused before it writes any file."""

    def error(*words: str) -> str:
        before = sorted(Path().rglob("*"))
        assert main([*words]) == ExitCode.WRONG_INPUT
        assert sorted(Path().rglob("*")) == before
        return capfd.readouterr().err

    return error


def edit(name: str, old: str, new: str) -> None:
    path = Path(name)
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def add(text: str) -> None:
    path = Path("mine.py")
    path.write_text(f"{path.read_text()}\n\n{text}\n")
