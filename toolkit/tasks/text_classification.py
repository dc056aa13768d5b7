"""Text classification: one label for each text of a table."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from toolkit.config.schema import Experiment
from toolkit.data.prepared import Prepared, prepare
from toolkit.data.samples import pad_batch
from toolkit.files import write_atomic, write_json
from toolkit.metrics import Classification
from toolkit.rundir import RunDir
from toolkit.tasks.base import Loss, Report, Score, build_model

#: So that a row of the predictions is a line of the file.
_ONE_LINE = str.maketrans("\t\r\n", "   ")


@dataclass(frozen=True, slots=True)
class Batch:
    """tokens [B, L] padded at the end, labels [B], and the number of real tokens."""

    tokens: torch.Tensor
    labels: torch.Tensor
    real_tokens: int


class TextClassificationTask:
    """Cross-entropy over the labels; scores are the confusion matrix."""

    train_sums = ("correct",)

    @classmethod
    def prepare(cls, experiment: Experiment, report: Report | None = None) -> str:
        data = prepare(experiment.data, report)
        counts = ", ".join(f"{name} {count:,}" for name, count in data.splits.items())
        state = "prepared" if data.built else "was prepared before"
        return f"{state}: {counts}; {len(data.labels)} labels, {data.vocabulary_size:,} tokens; {data.path}"

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        self._data: Prepared = prepare(experiment.data)
        self.fingerprint = self._data.fingerprint
        self.splits = {name: self._data.split(name) for name in self._data.splits}
        self.labels = self._data.labels
        classes = range(len(self.labels))
        self.score_sums = ("loss", "count", *(f"confusion_{t}_{p}" for t in classes for p in classes))
        self.output_width = len(self.labels)

    def model(self) -> nn.Module:
        return build_model(
            self._experiment,
            vocabulary_size=self._data.vocabulary_size,
            classes=len(self.labels),
            pad_id=self._data.pad_id,
        )

    def collate(self, split: str, indices: np.ndarray, device: torch.device) -> Batch:
        tokens, lengths, labels = pad_batch(self.splits[split], indices, self._data.pad_id)
        return Batch(
            torch.from_numpy(tokens).to(device, non_blocking=True),
            torch.from_numpy(labels).to(device, non_blocking=True),
            int(lengths.sum()),
        )

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        scores = model(batch.tokens)
        correct = (scores.argmax(1) == batch.labels).sum()
        total = functional.cross_entropy(scores.float(), batch.labels, reduction="sum")
        return Loss(
            total=total, count=len(batch.labels), tokens=batch.real_tokens, sums=correct[None].double()
        )

    def score(self, model: nn.Module, batch: Batch) -> Score:
        log_probabilities = model(batch.tokens).float().log_softmax(1)
        loss = functional.nll_loss(log_probabilities, batch.labels, reduction="sum")
        classes = len(self.labels)
        cells = batch.labels * classes + log_probabilities.argmax(1)
        confusion = torch.bincount(cells, minlength=classes * classes).double()
        head = torch.stack([loss.double(), loss.new_tensor(len(batch.labels), dtype=torch.float64)])
        return Score(sums=torch.cat([head, confusion]), outputs=log_probabilities)

    def train_metrics(self, sums: Mapping[str, float], count: float) -> dict[str, float]:
        return {"accuracy": sums["correct"] / count}

    def metrics(self, sums: np.ndarray) -> dict[str, float]:
        scores = self._classification(sums)
        return {"loss": float(sums[0] / sums[1]), "accuracy": scores.accuracy, **scores.macro()}

    def write_report(self, run: RunDir, split: str, sums: np.ndarray, outputs: np.ndarray) -> None:
        run.artifacts.mkdir(exist_ok=True)
        write_json(run.classes(split), self._classification(sums).to_json())
        write_atomic(run.predictions(split), self._predictions(split, outputs))

    def _classification(self, sums: np.ndarray) -> Classification:
        classes = len(self.labels)
        return Classification(self.labels, sums[2:].reshape(classes, classes).astype(np.int64))

    def _predictions(self, split: str, outputs: np.ndarray) -> str:
        """PyText's five columns, in the order of the split."""
        samples = self.splits[split]
        table = io.StringIO()
        writer = csv.writer(table, delimiter="\t", lineterminator="\n")
        writer.writerow(["prediction", "target", "score", "row_index", "text"])
        texts = samples.texts(np.arange(len(samples)))
        for row, text in zip(range(len(samples)), texts, strict=True):
            scores = json.dumps([round(float(value), 6) for value in outputs[row]])
            predicted, target = self.labels[outputs[row].argmax()], self.labels[samples.labels[row]]
            writer.writerow([predicted, target, scores, row, text.translate(_ONE_LINE)])
        return table.getvalue()
