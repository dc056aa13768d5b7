"""A stop while the data are prepared or read: the attempt ends before its first step."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.toolkit.support.ranks import in_ranks
from toolkit.config import load
from toolkit.reliability.stop import StopFlag
from toolkit.run.attempts.records import read_attempts
from toolkit.run.create_run import create_run
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World
from toolkit.training import worker

#: The last rank alone is asked to stop; rank 0 alone prepares.
_FILE = """\
import os
import signal
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import TensorDataset


def called(name, rank):
    with open(f"calls.{os.environ['RANK']}", "a") as calls:
        calls.write(f"{name} ")
    if name == "STOPPED" and os.environ["RANK"] == rank:
        os.kill(os.getpid(), signal.SIGTERM)


def prepare():
    called("prepare", "0")


def model():
    return nn.Linear(4, 2)


def data(split: str):
    called(split, str(int(os.environ["WORLD_SIZE"]) - 1))
    return TensorDataset(torch.zeros(8, 4), torch.zeros(8, dtype=torch.long))


def step(model, batch):
    inputs, labels = batch
    return {"loss": nn.functional.cross_entropy(model(inputs), labels, reduction="none")}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stopped.yaml").write_text("name: stopped\ntask: stopped.py\ntrain: {epochs: 1}\n")
    paths = list(sys.path)
    yield tmp_path
    sys.path[:] = paths
    sys.modules.pop("stopped", None)


def _rank(world: World, path: Path) -> str:
    stop = StopFlag().install(signal.SIGTERM)
    return worker.run_attempt(RunDir(path), world, stop).value


@pytest.mark.parametrize(
    "size, during, calls",
    [
        (1, "prepare", ["prepare"]),
        (1, "train", ["prepare train validation test"]),
        (2, "train", ["prepare train validation test", "train validation test"]),
    ],
)
def test_attempt_that_is_stopped_while_it_reads_data_makes_no_step(
    folder: Path, size: int, during: str, calls: list[str]
) -> None:
    (folder / "stopped.py").write_text(_FILE.replace("STOPPED", during))
    run = create_run(load(folder / "stopped.yaml"), folder / "runs")
    assert in_ranks(size, _rank, run.path) == ["yielded"] * size
    found = [folder / f"calls.{rank}" for rank in range(size)]
    assert [each.read_text().strip() if each.exists() else "" for each in found] == calls
    (attempt,) = read_attempts(run)
    assert (attempt.why, attempt.last_step, attempt.first_step_s) == ("SIGTERM", 0, None)
