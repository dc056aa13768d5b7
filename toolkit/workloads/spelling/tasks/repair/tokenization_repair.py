"""Repair of white space: keep each character of a text, insert a space before it, or delete it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import nn

from toolkit.config.schema import Experiment
from toolkit.nlp.ratio import mean
from toolkit.run.run_dir import RunDir
from toolkit.task import Evaluation, Loss, Score, lists_of
from toolkit.workloads.spelling.data.samples import layout
from toolkit.workloads.spelling.data.samples.prepared import SpellingSet
from toolkit.workloads.spelling.files import SpellingFiles
from toolkit.workloads.spelling.metrics.counts import Counts
from toolkit.workloads.spelling.models.batches import RepairBatch
from toolkit.workloads.spelling.models.losses import loss_sums, summed_cross_entropy
from toolkit.workloads.spelling.tasks.base import check_targets, write_lines
from toolkit.workloads.spelling.tasks.repair.base import (
    CLASSES,
    REPAIR_SUMS,
    RepairingTask,
    classes_of,
    known_labels,
    repaired_texts,
)


class TokenizationRepairTask(RepairingTask):
    """Cross-entropy of the classes of characters; scores are counts of spaces."""

    train_sums = REPAIR_SUMS[:3]
    score_sums = ("loss", "count", *REPAIR_SUMS)

    def __init__(self, experiment: Experiment, data: SpellingSet | None = None) -> None:
        super().__init__(experiment, data)
        for samples in self.splits.values():
            check_targets(samples, "tokenization_repair")

    def collate(self, split: str, indices: np.ndarray, device: torch.device) -> RepairBatch:
        samples = self.splits[split]
        repairs = samples.rows(layout.REPAIRS, indices, layout.UNKNOWN)
        return RepairBatch(
            **self._fields(samples, indices, device),
            labels=known_labels(repairs, device),
            labelled=int((repairs != layout.UNKNOWN).sum()),
        )

    def loss(self, model: nn.Module, batch: RepairBatch) -> Loss:
        scores = batch.scored_by(model).float()
        sums = self._repair_sums(scores, batch.labels, batch.tokens)[: len(self.train_sums)]
        total = self._loss(scores, batch)
        return Loss(total=total, count=batch.labelled, tokens=batch.real_tokens, sums=sums)

    def score(self, model: nn.Module, batch: RepairBatch) -> Score:
        scores = batch.scored_by(model).float()
        loss = loss_sums(self._loss(scores, batch), batch.labelled)
        sums = torch.cat([loss, self._repair_sums(scores, batch.labels, batch.tokens)])
        return Score(sums=sums, outputs={CLASSES: classes_of(scores, batch.lengths)})

    def _loss(self, scores: torch.Tensor, batch: RepairBatch) -> torch.Tensor:
        return summed_cross_entropy(scores, batch.labels, self._experiment.model.class_weights)

    def train_metrics(self, sums: Mapping[str, float], count: float) -> dict[str, float]:
        return {"f1": Counts.of_sums(*(sums[name] for name in self.train_sums)).f1}

    def metrics(self, split: str, evaluation: Evaluation) -> dict[str, float]:
        score = self.repair_score(evaluation)
        total, count = evaluation.sums[:2].tolist()
        return {
            "loss": mean(total, count),
            **score.counts.figures(),
            "sequence_f1": score.sequence_f1,
            "sequence_accuracy": score.sequence_accuracy,
        }

    def correct(self, model: nn.Module, split: str, indices: np.ndarray, device: torch.device) -> list[str]:
        """Return these texts of a split with their white space repaired by a model in evaluation mode."""
        batch = self.collate(split, indices, device)
        classes = lists_of(classes_of(batch.scored_by(model).float(), batch.lengths))
        return [*repaired_texts(self.splits[split], indices, classes)]

    def write_report(self, run: RunDir, split: str, evaluation: Evaluation) -> None:
        files, samples = SpellingFiles(run), self.splits[split]
        counts = self._repair_facts(evaluation)
        self._write_facts(files.repair_counts(split), split, evaluation, counts=counts)
        texts = repaired_texts(samples, np.arange(len(samples)), evaluation.outputs[CLASSES])
        write_lines(files.repairs(split), samples, texts)
