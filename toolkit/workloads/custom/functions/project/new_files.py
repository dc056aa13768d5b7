"""The files of a new project. They are those of examples/digits/."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

_DIGITS = '''\
"""Handwritten digits of 8 × 8 pixels, which scikit-learn ships."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import TensorDataset


def model(hidden: int = 64, dropout: float = 0.1):
    return nn.Sequential(nn.Linear(64, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, 10))


def data(split: str):
    images, labels = load_digits(return_X_y=True)
    part = np.arange(len(labels)) % 10
    chosen = {"train": part < 8, "validation": part == 8, "test": part == 9}[split]
    return TensorDataset(torch.tensor(images[chosen] / 16).float(), torch.tensor(labels[chosen]))


def step(model, batch):
    images, labels = batch
    scores = model(images)
    loss = F.cross_entropy(scores, labels, reduction="none")
    return {"loss": loss, "accuracy": scores.argmax(1) == labels}
'''

_EXPERIMENT = """\
name: digits
task: digits.py
model: {hidden: 128}
train: {epochs: 10, batch_size: 64}
optimizer: {lr: 0.01}
evaluation: {metric: accuracy:max}
"""

_TEST = '''\
"""A step gives one value for each sample."""

from digits import data, model, step
from torch.utils.data import default_collate


def test_a_step_gives_a_value_for_each_sample():
    samples = data("train")
    found = step(model(), default_collate([samples[index] for index in range(8)]))
    assert found["loss"].shape == found["accuracy"].shape == (8,)
'''

_IGNORED = """\
experiments/
__pycache__/
"""

_SCHEMA = "stk.schema.json"


def new_files() -> dict[str, str]:
    """Their contents by name; beside them the schema of experiments, which the one here names."""
    files = {
        "digits.py": _DIGITS,
        "digits.yaml": f"# yaml-language-server: $schema={_SCHEMA}\n{_EXPERIMENT}",
        "test_digits.py": _TEST,
        ".gitignore": _IGNORED,
    }
    return {**files, _SCHEMA: f"{_schema(files)}\n"}


def _schema(files: Mapping[str, str]) -> str:
    """The schema with the keys that the functions take."""
    from toolkit.sweeps.json_schema import file_schema  # imports all sections

    with TemporaryDirectory(prefix="stk-init-") as folder:
        for name, text in files.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        return file_schema([Path(folder, "digits.yaml")])
