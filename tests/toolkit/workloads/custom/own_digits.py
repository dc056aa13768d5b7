"""A project of a user who has three functions: handwritten digits that scikit-learn ships."""

from __future__ import annotations

from pathlib import Path

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


def write_digits(folder: Path) -> Path:
    """Write the project into a folder; return its experiment file."""
    (folder / "my_project").mkdir(parents=True)
    (folder / "my_project" / "__init__.py").touch()
    (folder / "my_project" / "models.py").write_text(MODELS)
    (folder / "digits.py").write_text(DIGITS)
    (folder / "digits.yaml").write_text(EXPERIMENT)
    return folder / "digits.yaml"
