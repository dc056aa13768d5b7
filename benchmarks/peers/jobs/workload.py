"""The training of every other tool: a small text CNN on made-up texts."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from marks import mark
from settings import SAMPLES, SEED, step_s
from torch import Tensor, nn

WORDS, LENGTH, CLASSES = 4000, 32, 2


class TextCNN(nn.Module):
    """Classify texts of LENGTH tokens. Its parameters and Adam's state make a checkpoint of 7 MB."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 128)
        self.convolution = nn.Conv1d(128, 128, 3)
        self.dropout = nn.Dropout(0.1)
        self.output = nn.Linear(128, CLASSES)

    def forward(self, tokens: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """Return `loss` (mean over the batch) and `logits` [batch, CLASSES] of `tokens` [batch, LENGTH]."""
        if self.training:
            # Simulate the step time of a larger model.
            time.sleep(step_s())
        features = torch.relu(self.convolution(self.embedding(tokens).transpose(1, 2))).amax(dim=2)
        logits = self.output(self.dropout(features))
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class Texts(torch.utils.data.Dataset[dict[str, Tensor]]):
    """Random texts; the label is 1 if the mean token number is in the upper half."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(SEED)
        self.tokens = torch.randint(WORDS, (SAMPLES, LENGTH), generator=generator)
        self.labels = (self.tokens.float().mean(dim=1) > WORDS / 2).long()

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return {"tokens": self.tokens[index], "labels": self.labels[index]}


class Notes:
    """Files for the driver: the ranks, the time of each step, the checksum of the final weights."""

    def __init__(self, folder: Path, rank: int) -> None:
        self._folder = folder
        self._rank = rank
        self._start = os.environ.get("SLURM_RESTART_COUNT", "0")
        processes = folder / "processes"
        processes.mkdir(parents=True, exist_ok=True)
        facts = {"rank": rank, "pid": os.getpid(), "time": time.time()}
        _write_whole(processes / f"{os.getpid()}.json", facts)

    def mark(self, name: str) -> None:
        """Write a mark of the start. Rank 0 writes."""
        mark(self._folder, name)

    def step(self, step: int) -> None:
        """Note that `step` steps are done. Rank 0 writes."""
        if self._rank == 0:
            line = {"step": step, "time": time.time(), "pid": os.getpid(), "restart": self._start}
            with (self._folder / "steps.jsonl").open("a") as file:
                file.write(json.dumps(line) + "\n")

    def finished(self, model: nn.Module) -> None:
        """Note the checksum of the final weights. Rank 0 writes."""
        if self._rank == 0:
            digest = hashlib.sha256()
            for name, tensor in sorted(model.state_dict().items()):
                digest.update(name.encode() + tensor.contiguous().numpy().tobytes())
            _write_whole(self._folder / "finished.json", {"sha256": digest.hexdigest()})


def _write_whole(file: Path, content: Mapping[str, Any]) -> None:
    """Write a file atomically: the driver may read it at any time."""
    unfinished = file.with_suffix(".tmp")
    unfinished.write_text(json.dumps(content))
    os.replace(unfinished, file)
