"""Text classification: one label for each text of a table."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from toolkit.config.schema import Experiment
from toolkit.data.sources.compressed import unpacked_name
from toolkit.errors import UserError
from toolkit.nlp.encoder_config import check_longest
from toolkit.nlp.weights_export import export_model
from toolkit.run.run_dir import RunDir
from toolkit.system.output.nearest import suggest
from toolkit.task import Evaluation, Loss, Score, build_model
from toolkit.workload import Progress
from toolkit.workloads.text_classification.artifacts.evaluation import write_evaluation
from toolkit.workloads.text_classification.artifacts.predictions import Predictions, samples_per_text
from toolkit.workloads.text_classification.artifacts.scores import write_labels
from toolkit.workloads.text_classification.config import BALANCED, TextTable
from toolkit.workloads.text_classification.data.prepared import Prepared, prepare
from toolkit.workloads.text_classification.data.samples import pad_batch
from toolkit.workloads.text_classification.inference.kept_encoding import (
    keep,
    stored_encoding,
    without_origin,
)
from toolkit.workloads.text_classification.metrics.class_scores import Classification
from toolkit.workloads.text_classification.models.pretrained import Pretrained


@dataclass(frozen=True, slots=True)
class Batch:
    """Tokens [B, L], padded at the end; labels [B]; number of tokens without padding; weights [B] or None."""

    tokens: torch.Tensor
    labels: torch.Tensor
    real_tokens: int
    weights: torch.Tensor | None = None


#: Counts of each class, in the order of the fields of `Classification`.
_COUNTS = ("support", "predicted", "right")
_OUTPUT = "log_probabilities"
_WEIGHTED = "task.class_weights change the loss of training alone: compare it with no loss of another split"


class TextClassificationTask:
    """Cross-entropy over the labels. Scores come from counts of each class, for samples and for whole texts.

    Outputs are the log-probabilities of the classes.
    """

    train_sums = ("correct",)

    @classmethod
    def prepare(cls, experiment: Experiment, progress: Progress | None = None) -> str:
        return prepare(experiment.data, progress).summary()

    def __init__(self, experiment: Experiment, data: Prepared | None = None) -> None:
        self._experiment = experiment
        self._data = data or prepare(experiment.data)
        self.prepared = self._data.path
        self.fingerprint = self._data.fingerprint
        self.summary = self._data.description()
        self.splits = {name: self._data.split(name) for name, size in self._data.splits.items() if size}
        self.labels = self._data.labels
        self._encoding = self._data.encoding
        training = self.splits["train"].labels if "train" in self.splits else np.array([], dtype=np.int64)
        self._class_weights = class_weights(experiment.task.class_weights, self.labels, training)
        # Not the cells of the confusion matrix: 20,000 classes would have 400 million cells.
        codes = range(len(self.labels))
        self.score_sums = ("loss", "count", *(f"{name}_{code}" for name in _COUNTS for code in codes))

    def on(self, data: TextTable, progress: Progress | None = None) -> TextClassificationTask:
        known = prepare(data, progress, known=self._encoding)
        return TextClassificationTask(replace(self._experiment, data=data), known)

    @classmethod
    def of_kept(
        cls, run: RunDir, experiment: Experiment, data: TextTable, named: Collection[str], progress: Progress
    ) -> TextClassificationTask | None:
        """Return this task for another file, with the labels and the tokenizer that a run has kept."""
        kept = stored_encoding(run)
        if kept is None:
            return None
        known = prepare(data, progress, known=kept)
        return cls(replace(without_origin(run, experiment), data=data), known)

    def model(self) -> nn.Module:
        model = build_model(
            self._experiment,
            vocabulary_size=self._encoding.vocabulary_size,
            labels=self.labels,
            pad_id=self._encoding.pad_id,
            tokens=lambda: self._data.vocabulary().decode(range(self._encoding.vocabulary_size)),
        )
        if isinstance(model, Pretrained):
            longest = max(int(samples.lengths.max(initial=0)) for samples in self.splits.values())
            check_longest(
                model.network.config.to_dict(), longest, self._experiment.model.path, "data.max_tokens"
            )
        return model

    def collate(self, split: str, indices: np.ndarray, device: torch.device) -> Batch:
        tokens, lengths, labels = pad_batch(self.splits[split], indices, self._encoding.pad_id)
        weights = None
        if split == "train" and self._class_weights is not None:
            weights = torch.from_numpy(self._class_weights[labels]).to(device, non_blocking=True)
        return Batch(
            torch.from_numpy(tokens).to(device, non_blocking=True),
            torch.from_numpy(labels).to(device, non_blocking=True),
            int(lengths.sum()),
            weights,
        )

    def loss(self, model: nn.Module, batch: Batch) -> Loss:
        scores = model(batch.tokens)
        correct = (scores.argmax(1) == batch.labels).sum()
        if batch.weights is None:
            total = functional.cross_entropy(scores.float(), batch.labels, reduction="sum")
        else:
            losses = functional.cross_entropy(scores.float(), batch.labels, reduction="none")
            total = (losses * batch.weights).sum()
        return Loss(
            total=total, count=len(batch.labels), tokens=batch.real_tokens, sums=correct[None].double()
        )

    def score(self, model: nn.Module, batch: Batch) -> Score:
        log_probabilities = model(batch.tokens).float().log_softmax(1)
        loss = functional.nll_loss(log_probabilities, batch.labels, reduction="sum")
        classes, predicted = len(self.labels), log_probabilities.argmax(1)
        # Wrong predictions are counted in an extra class, which is dropped.
        right = torch.where(predicted == batch.labels, predicted, classes)
        counts = [
            torch.bincount(codes, minlength=classes + 1)[:classes].double()
            for codes in (batch.labels, predicted, right)
        ]
        head = torch.stack([loss.double(), loss.new_tensor(len(batch.labels), dtype=torch.float64)])
        return Score(sums=torch.cat([head, *counts]), outputs={_OUTPUT: log_probabilities})

    def train_metrics(self, sums: Mapping[str, float], count: float) -> dict[str, float]:
        return {"accuracy": sums["correct"] / count}

    def metrics_need_outputs(self, split: str) -> bool:
        """Whether texts have several samples, so that the scores of samples and of texts differ."""
        text_ids = self.splits[split].text_ids
        return len(np.unique(text_ids)) < len(text_ids)

    def metrics(self, split: str, evaluation: Evaluation) -> dict[str, float]:
        sums = evaluation.sums
        texts = scores = Classification(self.labels, *sums[2:].reshape(len(_COUNTS), -1).astype(np.int64))
        if self.metrics_need_outputs(split):
            pooled = self._predictions(split, evaluation).of_texts(self._experiment.task.pooling)
            texts = pooled.classification()
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
            pooling=self._experiment.task.pooling,
            texts=samples.texts,
            sources=samples.whole_texts,
        )

    def export(self, run: RunDir, model: nn.Module) -> None:
        splits = {name: (each.labels, each.text_ids) for name, each in self.splits.items()}
        weighted = [] if self._class_weights is None else [_WEIGHTED]
        write_labels(run, self.labels, splits, [*self._data.notes, *weighted])
        pretrained = model.network if isinstance(model, Pretrained) else None
        keep(run, self._encoding)
        export_model(run, model, self._root, self._data.tokenizer_files, pretrained)

    @property
    def _root(self) -> str:
        """The beginning of some file names: the name of the data file without its ending."""
        data = self._experiment.data
        return unpacked_name(Path(data.path or data.train)).stem

    def _predictions(self, split: str, evaluation: Evaluation) -> Predictions:
        samples = self.splits[split]
        return Predictions(
            split=split,
            labels=self.labels,
            truth=samples.labels,
            log_probabilities=evaluation.outputs[_OUTPUT].rows,
            sample_ids=samples.ids,
            text_ids=samples.text_ids,
            fragments=samples_per_text(samples.text_ids),
        )


def class_weights(given: Any, labels: Sequence[str], codes: np.ndarray) -> np.ndarray | None:
    """Return the weights [C] of the classes; None without weights.

    given  the value of task.class_weights
    codes  the labels of the training samples [n]

    `balanced` gives class c the weight n / (C n_c), as in scikit-learn, so the mean over the training samples
    is 1. A class without samples gets 0. Raises UserError for a label that is not in the data, and if
    all samples have weight 0.
    """
    if given is None:
        return None
    if given == BALANCED:
        counts = np.bincount(codes, minlength=len(labels))
        return np.where(counts > 0, len(codes) / (len(labels) * np.maximum(counts, 1)), 0.0).astype(
            np.float32
        )
    if unknown := next((label for label in given if label not in labels), None):
        raise UserError(
            f"task.class_weights names the label {unknown!r}, which the training set does not have "
            f"({suggest(unknown, labels) or ', '.join(labels[:10])})"
        )
    weights = np.array([given.get(label, 1.0) for label in labels], dtype=np.float32)
    if len(codes) and not weights[codes].any():
        raise UserError("task.class_weights is 0 for every text of the training set")
    return weights
