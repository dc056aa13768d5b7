"""Text classification: one label for each text of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from toolkit.artifacts.evaluation import write_evaluation
from toolkit.artifacts.predictions import Predictions
from toolkit.artifacts.scores import write_labels
from toolkit.config.kinds import TextTable
from toolkit.config.schema import Experiment
from toolkit.data.prepared import Prepared, prepare, prepare_benchmark
from toolkit.data.samples import pad_batch
from toolkit.metrics.classification import Classification
from toolkit.models.export import export_model
from toolkit.rundir import RunDir
from toolkit.tasks.base import Evaluation, Loss, Report, Score, build_model


@dataclass(frozen=True, slots=True)
class Batch:
    """tokens [B, L] padded at the end, labels [B], and the number of real tokens."""

    tokens: torch.Tensor
    labels: torch.Tensor
    real_tokens: int


class TextClassificationTask:
    """Cross-entropy over the labels; scores are the confusion matrix, of samples and of whole texts."""

    train_sums = ("correct",)

    @classmethod
    def prepare(cls, experiment: Experiment, report: Report | None = None) -> str:
        return prepare(experiment.data, report).summary()

    def __init__(self, experiment: Experiment, data: Prepared | None = None) -> None:
        self._experiment = experiment
        self._data = data or prepare(experiment.data)
        self.prepared = self._data.path
        self.fingerprint = self._data.fingerprint
        self.summary = self._data.summary()
        self.splits = {name: self._data.split(name) for name in self._data.splits}
        self.labels = self._data.labels
        classes = range(len(self.labels))
        self.score_sums = ("loss", "count", *(f"confusion_{t}_{p}" for t in classes for p in classes))
        self.output_width = len(self.labels)

    def on(self, data: TextTable, report: Report | None = None) -> TextClassificationTask:
        known = prepare_benchmark(data, self._data, report)
        return TextClassificationTask(replace(self._experiment, data=data), known)

    def model(self) -> nn.Module:
        return build_model(
            self._experiment,
            vocabulary_size=self._data.vocabulary_size,
            labels=self.labels,
            pad_id=self._data.pad_id,
            tokens=lambda: self._data.vocabulary().decode(range(self._data.vocabulary_size)),
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

    def metrics(self, split: str, evaluation: Evaluation) -> dict[str, float]:
        sums, classes = evaluation.sums, len(self.labels)
        scores = Classification(self.labels, sums[2:].reshape(classes, classes).astype(np.int64))
        predictions = self._predictions(split, evaluation)
        # Of texts that were not folded the scores are those of their samples.
        texts = predictions.of_texts(self._pooling).classification() if predictions.folded else scores
        return {
            "loss": float(sums[0] / sums[1]),
            "accuracy": scores.accuracy,
            **scores.macro(),
            "weighted_f1": scores.weighted()["weighted_f1"],
            "mcc": scores.matthews,
            "text_accuracy": texts.accuracy,
            "text_macro_f1": texts.macro()["macro_f1"],
        }

    def write_report(self, run: RunDir, split: str, evaluation: Evaluation) -> None:
        samples = self.splits[split]
        write_evaluation(
            run,
            self._predictions(split, evaluation),
            root=self._root,
            pooling=self._pooling,
            texts=samples.texts,
            sources=samples.whole_texts,
        )

    def export(self, run: RunDir, model: nn.Module) -> None:
        write_labels(
            run, self.labels, {name: (each.labels, each.text_ids) for name, each in self.splits.items()}
        )
        export_model(run, model, self._root, self._data.tokenizer_files)

    @property
    def _pooling(self) -> str:
        pooling: str = self._experiment.task.pooling
        return pooling

    @property
    def _root(self) -> str:
        """What the files of a run are called by: its data file."""
        data = self._experiment.data
        return Path(data.path or data.train).stem

    def _predictions(self, split: str, evaluation: Evaluation) -> Predictions:
        samples = self.splits[split]
        return Predictions.of_samples(
            split, self.labels, samples.labels, evaluation.outputs, samples.ids, samples.text_ids
        )
