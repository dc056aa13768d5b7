"""Telling the label of a text."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from stk_toy.texts import files
from stk_toy.texts.prepared import Texts, prepare, prepare_other
from toolkit.data.provenance import origins
from toolkit.task import Loss, Score, build_model
from toolkit.workload import silent

#: Samples of each label: rightly told, of this label, told to be.
_COUNTS = ("right", "all", "told")


class Batch(NamedTuple):
    tokens: torch.Tensor
    labels: torch.Tensor
    real_tokens: int


class TextsTask:
    train_sums = ("correct",)

    def __init__(self, experiment, texts: Texts | None = None) -> None:
        self._experiment = experiment
        self._texts = texts or prepare(experiment.data, silent)
        self.prepared, self.fingerprint = self._texts.path, self._texts.fingerprint
        self.summary, self.labels = self._texts.summary(), self._texts.labels
        self.splits = {name: self._texts.split(name) for name in self._texts.splits}
        self.score_sums = ("loss", "count", *(f"{what}_{label}" for what in _COUNTS for label in self.labels))

    @classmethod
    def prepare(cls, experiment, progress=None) -> str:
        return prepare(experiment.data, progress or silent).summary()

    def on(self, data, progress=None):
        other = prepare_other(data, self._texts, progress or silent)
        return TextsTask(replace(self._experiment, data=data), other)

    def model(self) -> nn.Module:
        sizes = {"vocabulary_size": self._texts.meta["vocabulary_size"], "labels": len(self.labels)}
        return build_model(self._experiment, **sizes)

    def collate(self, split, indices, device) -> Batch:
        tokens, labels, real_tokens = self.splits[split].batch(indices)
        return Batch(
            *(torch.from_numpy(each).to(device, non_blocking=True) for each in (tokens, labels)), real_tokens
        )

    def loss(self, model, batch: Batch) -> Loss:
        scores = model(batch.tokens)
        return Loss(
            total=functional.cross_entropy(scores.float(), batch.labels, reduction="sum"),
            count=len(batch.labels),
            tokens=batch.real_tokens,
            sums=(scores.argmax(1) == batch.labels).sum()[None].double(),
        )

    def score(self, model, batch: Batch) -> Score:
        with torch.no_grad():
            said = model(batch.tokens).float().log_softmax(1)
        loss = functional.nll_loss(said, batch.labels, reduction="sum").double()
        told = said.argmax(1)
        counts = [
            torch.bincount(codes, minlength=len(self.labels)).double()
            for codes in (batch.labels[told == batch.labels], batch.labels, told)
        ]
        head = torch.stack([loss, loss.new_tensor(len(batch.labels))])
        return Score(sums=torch.cat([head, *counts]), outputs={"log_probabilities": said})

    def train_metrics(self, sums, count) -> dict[str, float]:
        return {"accuracy": sums["correct"] / count}

    def metrics_need_outputs(self, split) -> bool:
        return False

    def metrics(self, split, evaluation) -> dict[str, float]:
        loss, count = evaluation.sums[:2]
        right, every, told = evaluation.sums[2:].reshape(len(_COUNTS), -1)
        shares = {
            "macro_precision": right / np.maximum(told, 1),
            "macro_recall": right / np.maximum(every, 1),
            "macro_f1": 2 * right / np.maximum(every + told, 1),
        }
        means = {name: float(share.mean()) for name, share in shares.items()}
        return {"loss": float(loss / count), "accuracy": float(right.sum() / count), **means}

    def write_report(self, run, split, evaluation) -> None:
        samples = self.splits[split]
        said = evaluation.outputs["log_probabilities"].rows
        chosen = said.argmax(1)
        known = origins(samples, np.arange(len(samples)))
        lines = [
            "\t".join([self.labels[label], self.labels[code], f"{scores[code]:.6f}", origin.text])
            for label, code, scores, origin in zip(samples.labels, chosen, said, known, strict=True)
        ]
        files.write_predictions(run, split, lines)

    def export(self, run, model) -> None:
        torch.save(model.state_dict(), files.exported(run))
