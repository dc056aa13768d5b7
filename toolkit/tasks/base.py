"""What a task gives to the worker. Nothing in it knows of ranks, signals or checkpoints."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn

from toolkit.config.kinds import kind_of
from toolkit.config.schema import Experiment
from toolkit.rundir import RunDir

#: Called with (what, done, of how many or None) while data is prepared.
Report = Callable[[str, int, int | None], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """The loss of a micro-batch as a sum, never a mean.

    total    scalar tensor: summed over what was counted
    count    how much was counted (samples, tokens, mentions)
    tokens   real tokens read, for the throughput
    sums     further additive scores of training, shape [len(task.train_sums)]
    """

    total: torch.Tensor
    count: int
    tokens: int
    sums: torch.Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What one evaluation batch adds.

    sums      additive, shape [len(task.score_sums)]; the first two are the summed loss and its count
    outputs   one row per sample, shape [samples, task.output_width]
    """

    sums: torch.Tensor
    outputs: torch.Tensor


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A scored split: sums, shape [len(task.score_sums)], added over it; outputs [samples, output_width]."""

    sums: np.ndarray
    outputs: np.ndarray


class Samples(Protocol):
    """The samples of one split."""

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each sample; shape [n]."""

    def __len__(self) -> int: ...


class Task(Protocol):
    """One kind of learning.

    prepared       folder of the prepared data
    fingerprint    of the data, so that a run is never continued on other data
    summary        what the prepared data hold, and what was left out; for people
    splits         the samples by split: train, validation, and test if there is one
    train_sums     names of Loss.sums
    score_sums     names of Score.sums
    output_width   columns of Score.outputs
    """

    prepared: Path
    fingerprint: str
    summary: str
    splits: Mapping[str, Samples]
    train_sums: tuple[str, ...]
    score_sums: tuple[str, ...]
    output_width: int

    @classmethod
    def prepare(cls, experiment: Experiment, report: Report | None = None) -> str:
        """Build the prepared data unless it is there; say what there is, and where.

        Called by one process while others wait.
        """

    def __init__(self, experiment: Experiment) -> None:
        """Open the prepared data."""

    def on(self, data: Any, report: Report | None = None) -> Task:
        """This task on another file, for scoring: data.path as a whole is the one split, `test`.

        What was settled by the training data stays: labels, vocabulary, counts. Raises DataError.
        """

    def model(self) -> nn.Module:
        """A new model; its random numbers come from torch's generator."""

    def collate(self, split: str, indices: np.ndarray, device: torch.device) -> Any:
        """The batch of these samples of a split, on the device."""

    def loss(self, model: nn.Module, batch: Any) -> Loss:
        """The training loss; calls the model once."""

    def score(self, model: nn.Module, batch: Any) -> Score:
        """What an evaluation adds up, without gradients."""

    def train_metrics(self, sums: Mapping[str, float], count: float) -> dict[str, float]:
        """Metrics of training from global sums; the loss is added by the loop."""

    def metrics(self, split: str, evaluation: Evaluation) -> dict[str, float]:
        """Metrics of a split, `loss` among them."""

    def write_report(self, run: RunDir, split: str, evaluation: Evaluation) -> None:
        """Write the artifacts of a final evaluation; called by one process."""

    def export(self, run: RunDir, model: nn.Module) -> None:
        """Write the best weights in the forms that other programs read; called by one process."""


def task_class(experiment: Experiment) -> type[Task]:
    """The class of an experiment's task."""
    found: type[Task] = _load(kind_of(experiment.task).code)
    return found


def build_model(experiment: Experiment, **sizes: Any) -> nn.Module:
    """The experiment's model; sizes are what only the data knows, such as the vocabulary."""
    _, code = kind_of(experiment.task).models[experiment.model.kind]
    model: nn.Module = _load(code)(experiment.model, **sizes)
    return model


def _load(code: str) -> Any:
    module, _, name = code.partition(":")
    return getattr(importlib.import_module(module), name)
