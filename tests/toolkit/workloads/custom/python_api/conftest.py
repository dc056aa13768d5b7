"""A user's folder with functions in a module that can be imported."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

WORK = """
import os
import signal
from pathlib import Path

import stk


def add(a, b=2):
    return {"sum": a + b, "kinds": (type(a).__name__, type(b).__name__)}


def nothing():
    pass


def fails():
    raise ValueError("the 7th row")


def ends(status):
    os._exit(status)


def odd():
    return {"models": [1, object()]}


def read(n):
    return [Path("rows.csv").read_text(), *range(n)]


def rank():
    return [os.environ["RANK"], os.environ["WORLD_SIZE"]]


def needs(cluster):
    pass


def waits():
    Path(os.environ["STK_RUN_DIR"], "started").touch()
    signal.pause()


def goes_on():
    run = stk.current_run()
    folder = run.latest_checkpoint()
    if folder is None:
        with run.checkpoint(1) as new:
            (new / "state").write_text("saved before")
        os.kill(os.getpid(), signal.SIGKILL)
    return (folder / "state").read_text()


async def later():
    return 1


def numbers():
    yield 1


def outer():
    def inner():
        pass

    return inner


class Model:
    def fit(self):
        pass
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, empty."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("STK_EXPERIMENT_DIR", str(here / "experiments"))
    for name in ("RANK", "WORLD_SIZE", "STK_RUN_DIR"):
        monkeypatch.delenv(name, raising=False)
    return here


@pytest.fixture
def work(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The user's module `work`, which lies in the working folder."""
    (folder / "work.py").write_text(WORK)
    monkeypatch.syspath_prepend(str(folder))
    sys.modules.pop("work", None)
    yield importlib.import_module("work")
    sys.modules.pop("work", None)
