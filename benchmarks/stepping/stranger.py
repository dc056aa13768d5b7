"""The same training as a task of three functions, as a user of this project writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.stepping.work import WORDS, Work

#: The DocNN of the toolkit, reduced to this training.
_FILE = """\
import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import TensorDataset


class DocNN(nn.Module):
    def __init__(self, words, width, filters, kernels):
        super().__init__()
        self.embedding = nn.Embedding(words, width, padding_idx=0)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(width, filters, kernel, padding=kernel) for kernel in kernels
        )
        self.dropout = nn.Dropout(0.4)
        self.output = nn.Linear(filters * len(kernels), 2)

    def forward(self, tokens):
        vectors = self.embedding(tokens).transpose(1, 2)
        lengths = (tokens != 0).sum(1)
        pooled = []
        for convolution in self.convolutions:
            found = convolution(vectors).relu()
            places = torch.arange(found.shape[2])
            outside = places[None] >= (lengths + convolution.kernel_size[0] + 1)[:, None]
            pooled.append(found.masked_fill(outside[:, None], 0.0).amax(2))
        return self.output(self.dropout(torch.cat(pooled, 1)))


def model(words: int, width: int = 32, filters: int = 32):
    return DocNN(words, width, filters, (3, 4))


def data(split: str, samples: str):
    arrays = np.load(samples)
    tokens, labels = (torch.from_numpy(arrays[name]) for name in ("tokens", "labels"))
    count = len(labels) if split == "train" else 16
    return None if split == "test" else TensorDataset(tokens[:count], labels[:count])


def step(model, batch):
    tokens, labels = batch
    scores = model(tokens)
    loss = functional.cross_entropy(scores, labels, reduction="none")
    return {"loss": loss, "accuracy": scores.argmax(1) == labels}
"""


def write(folder: Path, work: Work, train: dict[str, Any]) -> Path:
    """Write the file and its experiment into a folder; return the experiment file."""
    (folder / "stranger.py").write_text(_FILE)
    theirs = {
        "name": "loop-stranger",
        "task": "stranger.py",
        "model": {"words": 5 + WORDS},
        "data": {"samples": str(work.tensors_file)},
    }
    file = folder / "experiment.json"
    file.write_text(json.dumps({**work.experiment(**train), **theirs}))
    return file
