"""Users' files with three functions: handwritten digits that scikit-learn ships, and points without data."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.toolkit.workloads.moved_run import ended
from toolkit.config import load
from toolkit.errors import ConfigError
from toolkit.run.run_dir import RunDir

_TESTS = Path(__file__).parents[3]

DIGITS = '''\
"""Handwritten digits."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch.nn import functional as F
from torch.utils.data import TensorDataset

from my_project.models import MLP


def model(hidden: int = 64, dropout: float = 0.1):
    return MLP(hidden, dropout)


def data(split: str, few: bool = False):
    images, labels = load_digits(return_X_y=True)
    part = np.arange(len(labels)) % 10
    chosen = {"train": part < 8, "validation": part == 8, "test": part == 9}[split]
    x = torch.tensor(images[chosen] / 16, dtype=torch.float32)
    count = 120 if few else None
    return TensorDataset(x[:count], torch.tensor(labels[chosen])[:count])


def step(model, batch):
    x, y = batch
    scores = model(x)
    return {"loss": F.cross_entropy(scores, y, reduction="none"), "accuracy": scores.argmax(1) == y}
'''

MODELS = '''\
"""Models of the project."""

from torch import nn


class MLP(nn.Sequential):
    def __init__(self, hidden, dropout):
        layers = nn.Linear(64, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, 10)
        super().__init__(*layers)
'''

EXPERIMENT = """\
name: digits
task: digits.py
model: {hidden: 32}
data: {few: true}
train: {epochs: 3, batch_size: 16}
evaluation: {metric: accuracy:max}
"""

#: A small file that needs no data.
POINTS = """\
import torch
from torch import nn
from torch.utils.data import TensorDataset


def model(width: int = 8):
    return nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 2))


def data(split: str):
    x = torch.randn(40, 4, generator=torch.Generator().manual_seed(1))
    return TensorDataset(x, (x[:, 0] > 0).long())


def step(model, batch):
    x, y = batch
    return {"loss": nn.functional.cross_entropy(model(x), y, reduction="none")}
"""


def write_digits(folder: Path) -> Path:
    """Write the project into a folder; return its experiment file."""
    (folder / "my_project").mkdir(parents=True)
    (folder / "my_project" / "__init__.py").touch()
    (folder / "my_project" / "models.py").write_text(MODELS)
    (folder / "digits.py").write_text(DIGITS)
    (folder / "digits.yaml").write_text(EXPERIMENT)
    return folder / "digits.yaml"


class Project:
    """A folder with nothing but the user's files, and `stk` started in it."""

    def __init__(self, folder: Path, experiments: str = "experiments") -> None:
        self.folder, self.experiments, self.errors = folder, experiments, ""

    def stk(self, *words: object, code: int = 0, given: str = "", faults: str = "") -> str:
        """Return the command's output, or the errors of one that is expected to fail."""
        environ = {**os.environ, "STK_FAULTS": faults, "PYTHONSAFEPATH": "1"}
        environ["PYTHONPATH"] = f"{_TESTS.parent}{os.pathsep}{_TESTS / 'undrawn'}"
        environ["STK_EXPERIMENT_DIR"] = str(self.folder / self.experiments)
        done = ended(*words, cwd=self.folder, env=environ, input=given)
        assert done.returncode == code, done.stderr
        self.errors = done.stderr
        return done.stdout if code == 0 else done.stderr

    @property
    def run(self) -> RunDir:
        (found,) = (self.folder / self.experiments).glob("digits-*")
        return RunDir(found)


def faults(config: Path, *overrides: str) -> Sequence[str]:
    """Why an experiment is refused."""
    with pytest.raises(ConfigError) as raised:
        load(config, overrides)
    return [str(fault) for fault in raised.value.faults]
