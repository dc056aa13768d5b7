"""Worker processes change how long training takes, and nothing else."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest

from tests.toolkit.support.ranks import in_ranks
from tests.toolkit.support.tiny_training import Attempt, counted_stop
from toolkit.config import load
from toolkit.errors import ConfigError
from toolkit.reliability.stop import NeverStop
from toolkit.run.create_run import create_run
from toolkit.run.run_dir import RunDir
from toolkit.system.world import World
from toolkit.testing.contract import same_results
from toolkit.training import worker

#: Both the dataset and the model draw random numbers.
_FILE = """\
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset


class Noisy(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        noise = torch.randn(4) + random.random() + float(np.random.rand())
        if index == BAD:
            raise ValueError(f"sample {index} cannot be read")
        return torch.full((4,), index / 40) + 0.1 * noise, index % 2


def model(width: int = 8):
    return nn.Sequential(nn.Linear(4, width), nn.Dropout(0.3), nn.Linear(width, 2))


def data(split: str):
    return Noisy()


def step(model, batch):
    inputs, labels = batch
    return {"loss": nn.functional.cross_entropy(model(inputs), labels, reduction="none")}
"""
_YAML = "name: noisy\ntask: noisy.py\ntrain: {epochs: 3, batch_size: 8, logical_ranks: 2}\n"


@pytest.fixture
def folder(empty_folder: Path) -> Path:
    (empty_folder / "noisy.yaml").write_text(_YAML)
    (empty_folder / "noisy.py").write_text(_FILE.replace("BAD", "None"))
    return empty_folder


def _rank(world: World, path: Path, attempt: Attempt) -> str:
    with patch("toolkit.training.attempt.finalize._report"), counted_stop(attempt, world.rank) as stop:
        return worker.run_attempt(RunDir(path), world, stop).value


def _trained(folder: Path, place: str, workers: int, *attempts: Attempt) -> RunDir:
    experiment = load(folder / "noisy.yaml", [f"train.workers={workers}"])
    run = create_run(experiment, folder / place)
    for attempt in attempts:
        expected = "finished" if attempt is attempts[-1] else "yielded"
        assert in_ranks(attempt.size, _rank, run.path, attempt) == [expected] * attempt.size
    return run


def test_workers_and_a_stop_do_not_change_the_result(folder: Path) -> None:
    without = _trained(folder, "none", 0, Attempt())
    same_results(_trained(folder, "one", 1, Attempt(size=2)), without)
    same_results(_trained(folder, "three", 3, Attempt(stop_after=7), Attempt(size=2)), without)


def test_error_of_a_dataset_in_a_worker_keeps_its_type_and_message(folder: Path) -> None:
    (folder / "noisy.py").write_text(_FILE.replace("BAD", "17"))
    (error,) = in_ranks(1, _failure, folder)
    assert error == "ValueError: sample 17 cannot be read"


def _failure(world: World, folder: Path) -> str:
    run = create_run(load(folder / "noisy.yaml", ["train.workers=2"]), folder / "failing")
    with pytest.raises(ValueError, match="sample") as raised:
        worker.run_attempt(run, world, NeverStop())
    assert "noisy.py" in "".join(raised.value.__notes__)
    return f"ValueError: {raised.value}"


def test_workers_are_refused_for_a_task_that_makes_its_own_batches(folder: Path) -> None:
    (folder / "docnn.yaml").write_text(
        "name: docnn\ntask: {kind: text_classification}\nmodel: {kind: docnn}\ndata: {path: x.csv}\n"
        "train: {workers: 2}\n"
    )
    with pytest.raises(ConfigError, match=r"train\.workers"):
        load(folder / "docnn.yaml")
