"""Predict with a run of text classification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from toolkit.analysis.prediction.predictor import RowFormat, UnfitRow
from toolkit.analysis.prediction.text_rows import checked_text
from toolkit.checkpoint.verification import trained_on
from toolkit.config.schema import Evaluation, Experiment
from toolkit.data.order.batches import evaluation_plan
from toolkit.data.ragged import Lists
from toolkit.run.run_dir import RunDir
from toolkit.task import build_model
from toolkit.workloads.text_classification.artifacts.predictions import pool_probabilities
from toolkit.workloads.text_classification.data.sources.formats.wording import shown
from toolkit.workloads.text_classification.inference.kept_encoding import (
    TextReader,
    kept_encoding,
    without_origin,
)

#: Digits of a probability, as in the tables of a run.
_DIGITS = 6


class ClassificationPredictor:
    """Predicts the most probable label of each text, and the probability of every label."""

    batches_at_once = 16

    def __init__(self, run: RunDir, experiment: Experiment) -> None:
        data = experiment.data
        self._kept = kept_encoding(run, data, trained_on(run))
        self.format = RowFormat(
            delimiter=data.delimiter, quoted=data.quoted, columns=data.columns, needed=(data.text_column,),
            encoding=data.encoding,
            takes_lines=True, keeps_numbers=True,
            answers=("label", *(f"probabilities.{label}" for label in self._kept.labels)),
        )  # fmt: skip
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
                raise UnfitRow(
                    f"found no {column!r} (data.text_column of the run), only {found}: {self._advice(row)}"
                )
            row = row[column]
        return checked_text(row, column)

    def _advice(self, row: Mapping[Any, Any]) -> str:
        """Return advice for a row without a text."""
        column, delimiter = self._experiment.data.text_column, self.format.delimiter
        if len(row) == 1 and any(each in str(*row) for each in ",;|\t"):
            # The whole header of a table was read as one name.
            cut = f"by {delimiter!r}, the run's data.delimiter" if delimiter else "at commas, or tabs in .tsv"
            return f"lines are cut {cut}; write the table with that, or give JSON lines"
        return f"rename the column or key to {column!r}, or give JSON lines that are texts alone"

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
        """Return the log-probabilities of each sample, [n, labels], in batches of similar length."""
        found = np.zeros((len(tokens), len(self._kept.labels)), dtype=np.float32)
        plan = evaluation_plan(settings, np.diff(tokens.offsets))
        for number in range(plan.steps):
            which = plan.step(number)
            batch = torch.from_numpy(tokens.gather(which, self._kept.pad_id)).to(device)
            found[which] = model(batch).float().log_softmax(1).cpu().numpy()
        return found
