"""The interface of a task to the worker. It knows no ranks, signals or checkpoints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from toolkit.config.schema import Experiment
from toolkit.data.ragged import Lists, offsets_of
from toolkit.errors import UserError
from toolkit.registry import load_code, task_kinds
from toolkit.run.run_dir import RunDir
from toolkit.workload import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """The loss of a micro-batch as a sum, never a mean.

    total    scalar tensor: summed over what was counted
    count    how much was counted (samples, tokens, or their weights); a scalar tensor if only the device
             knows it, because to read it would make the host wait
    tokens   real tokens read, for the throughput
    sums     further additive scores of training, shape [len(task.train_sums)]
    """

    total: torch.Tensor
    count: float | torch.Tensor
    tokens: int
    sums: torch.Tensor

    @property
    def counted(self) -> float:
        """`count` as a number, for which the host waits if it is a tensor."""
        return self.count.item() if isinstance(self.count, torch.Tensor) else self.count


@dataclass(frozen=True, slots=True, kw_only=True)
class Ragged:
    """Outputs of unequal lengths: the first lengths[i] values of row i count.

    rows     shape [samples, longest], of any dtype
    lengths  shape [samples]
    """

    rows: torch.Tensor
    lengths: torch.Tensor

    @classmethod
    def of(cls, lists: Sequence[Sequence[int]]) -> Ragged:
        """Whole numbers, such as token ids: one list per sample."""
        rows = pad_sequence([torch.tensor(each, dtype=torch.int64) for each in lists], batch_first=True)
        return cls(rows=rows, lengths=torch.tensor([len(each) for each in lists]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The sums of one evaluation batch.

    sums      additive, shape [len(task.score_sums)]; the first two are the summed loss and its count
    outputs   by name: the outputs for each sample, as a tensor [samples, width] or Ragged, of any dtype
    """

    sums: torch.Tensor
    outputs: Mapping[str, torch.Tensor | Ragged] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A scored split, on rank 0.

    sums      added over the split, shape [len(task.score_sums)]
    outputs   of all samples in their order, by name; `rows` of one is [samples, width] if that was its shape
    """

    sums: np.ndarray
    outputs: Mapping[str, Lists]


class Samples(Protocol):
    """The samples of one split."""

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each sample; shape [n]."""

    def __len__(self) -> int: ...


class Task(Protocol):
    """One kind of learning.

    If a task's runs keep everything that reading another file needs, it may also have a classmethod
    `of_kept(run, experiment, data, named, progress) -> Task | None`: this task on the file of the section
    `data`, as `on` makes it, but without the data of the run; None if the run keeps too little. `named`: the
    full keys, such as `data.path`, that the user set for this file. It may have `warnings`, texts about its
    data for the log of each attempt.

    prepared       folder of the prepared data; None if nothing is prepared
    fingerprint    of the data, so that a run is never continued on other data
    summary        what the prepared data hold, and what was left out; for people
    splits         the samples by split: train, validation, and test if there is one
    train_sums     names of Loss.sums
    score_sums     names of Score.sums
    """

    prepared: Path | None
    fingerprint: str
    summary: str
    splits: Mapping[str, Samples]
    train_sums: tuple[str, ...]
    score_sums: tuple[str, ...]

    @classmethod
    def prepare(cls, experiment: Experiment, progress: Progress | None = None) -> str:
        """Build the prepared data unless they exist; return a description of them with their place.

        Called by one process while others wait.
        """

    def __init__(self, experiment: Experiment) -> None:
        """Open the prepared data."""

    def on(self, data: Any, progress: Progress | None = None) -> Task:
        """This task on another file, for scoring: data.path as a whole is the only split, `test`.

        Everything that the training data determined stays, such as a vocabulary. Raises DataError.
        """

    def model(self) -> nn.Module:
        """A new model; its random numbers come from torch's generator."""

    def collate(self, split: str, indices: np.ndarray, device: torch.device) -> Any:
        """The batch of these samples of a split, on the device."""

    def loss(self, model: nn.Module, batch: Any) -> Loss:
        """The training loss."""

    def score(self, model: nn.Module, batch: Any) -> Score:
        """Return the sums of an evaluation batch, without gradients."""

    def train_metrics(self, sums: Mapping[str, float], count: float) -> dict[str, float]:
        """Metrics of training from global sums; the loss is added by the loop."""

    def metrics_need_outputs(self, split: str) -> bool:
        """Whether `metrics` reads the outputs of this split.

        If not, evaluations during training collect none.
        """

    def metrics(self, split: str, evaluation: Evaluation) -> dict[str, float]:
        """Metrics of a split, `loss` among them; called by one process."""

    def write_report(self, run: RunDir, split: str, evaluation: Evaluation) -> None:
        """Write the artifacts of a final evaluation; called by one process."""

    def export(self, run: RunDir, model: nn.Module) -> None:
        """Write the best weights in the forms that other programs read; called by one process."""


def lists_of(output: torch.Tensor | Ragged) -> Lists:
    """Outputs of a batch on the host; bfloat16, which numpy lacks, as float32."""
    if isinstance(output, Ragged):
        rows, lengths = _on_host(output.rows), _on_host(output.lengths)
    else:
        rows = _on_host(output).reshape(len(output), -1)
        lengths = np.full(len(rows), rows.shape[1])
    return Lists(rows[np.arange(rows.shape[1]) < lengths[:, None]], offsets_of(lengths))


def _on_host(tensor: torch.Tensor) -> np.ndarray:
    tensor = tensor.float() if tensor.dtype is torch.bfloat16 else tensor
    return np.asarray(tensor.detach().cpu().numpy())


def task_class(experiment: Experiment) -> type[Task]:
    """The class of an experiment's task. Raises UserError if it has none, or the class lacks a method."""
    code = task_kinds()[experiment.task.kind].task
    if not code:
        raise UserError(f"a run of task.kind {experiment.task.kind} has no known model")
    found: type[Task] = load_code(code)
    methods = [name for name in vars(Task) if not name.startswith("_") and name not in Task.__annotations__]
    # A subclass of the protocol inherits methods that do nothing.
    if lacking := [name for name in methods if getattr(found, name, None) in (None, vars(Task)[name])]:
        # Some are called after the training only.
        raise UserError(f"{code} lacks the method {', '.join(lacking)}: see toolkit.task.Task")
    return found


def build_model(experiment: Experiment, **sizes: Any) -> nn.Module:
    """The experiment's model; `sizes` depend on the data, such as the size of the vocabulary."""
    _, code = task_kinds()[experiment.task.kind].models[experiment.model.kind]
    model: nn.Module = load_code(code)(experiment.model, **sizes)
    return model
