"""Predict with a run of text classification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from toolkit.analysis.prediction.predictor import RowFormat, UnfitRow
from toolkit.analysis.prediction.text_rows import checked_text
from toolkit.checkpoint.manifest import trained_on
from toolkit.config.schema import Evaluation, Experiment
from toolkit.data.order.batches import evaluation_plan
from toolkit.data.ragged import Lists
from toolkit.run.run_dir import RunDir
from toolkit.task import build_model
from toolkit.workloads.text_classification.data.sources.formats.wording import shown
from toolkit.workloads.text_classification.inference.kept_encoding import kept_encoding, without_origin
from toolkit.workloads.text_classification.inference.text_reader import TextReader
from toolkit.workloads.text_classification.metrics.pooling import pool_probabilities

#: Digits of a probability, as in the tables of a run.
_DIGITS = 6


class ClassificationPredictor:
    """Predicts the most probable label of each text, and the probability of every label."""

    batches_at_once = 16

    def __init__(self, run: RunDir, experiment: Experiment) -> None:
        data = experiment.data
        self.format = RowFormat(
            delimiter=data.delimiter, quoted=data.quoted, columns=data.columns, encoding=data.encoding,
            takes_lines=True, keeps_numbers=True,
        )  # fmt: skip
        self._kept = kept_encoding(run, data, trained_on(run))
        self._reader = TextReader(data, self._kept)
        self._experiment = without_origin(run, experiment)

    def model(self) -> nn.Module:
        return build_model(
            self._experiment,
            vocabulary_size=self._kept.vocabulary_size,
            labels=self._kept.labels,
            pad_id=self._kept.pad_id,
        )

    def sample(self, row: Any) -> str:
        column = self._experiment.data.text_column
        if isinstance(row, dict):
            if column not in row:
                found = shown([str(name) for name in row]) or "nothing"
                raise UnfitRow(f"found no {column!r} (data.text_column), only {found}")
            row = row[column]
        return checked_text(row, column)

    def predict(
        self, model: nn.Module, samples: Sequence[str], settings: Evaluation, device: torch.device
    ) -> list[Any]:
        tokens, text_of = self._reader.read(samples)
        found = self._log_probabilities(model, tokens, settings, device)
        if len(found) > len(samples):
            _, found = pool_probabilities(found, text_of, self._experiment.task.pooling)
        probabilities = np.exp(found.astype(np.float64)).round(_DIGITS).tolist()
        codes = found.argmax(axis=1).tolist()
        labels = self._kept.labels
        return [
            {"label": labels[code], "probabilities": dict(zip(labels, row, strict=True))}
            for code, row in zip(codes, probabilities, strict=True)
        ]

    def _log_probabilities(
        self, model: nn.Module, tokens: Lists, settings: Evaluation, device: torch.device
    ) -> np.ndarray:
        """The log-probabilities of each sample, [n, labels], in batches of similar length."""
        found = np.zeros((len(tokens), len(self._kept.labels)), dtype=np.float32)
        plan = evaluation_plan(settings, np.diff(tokens.offsets))
        for number in range(plan.steps):
            which = plan.step(number)
            batch = torch.from_numpy(tokens.gather(which, self._kept.pad_id)).to(device)
            found[which] = model(batch).float().log_softmax(1).cpu().numpy()
        return found
