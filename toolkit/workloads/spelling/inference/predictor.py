"""Predict with a run of spelling, as `stk detect` and `stk correct` do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from toolkit.analysis.prediction.predictor import RowFormat
from toolkit.analysis.prediction.text_rows import checked_text
from toolkit.config.schema import Evaluation, Experiment
from toolkit.run.run_dir import RunDir
from toolkit.workloads.spelling.inference.capabilities import CORRECTORS, DETECTORS
from toolkit.workloads.spelling.inference.correcting import Corrector
from toolkit.workloads.spelling.inference.detecting import Detector
from toolkit.workloads.spelling.inference.load_run import prepared_run
from toolkit.workloads.spelling.tasks.detection import THRESHOLD

_TEXT = "text"


class SpellingPredictor:
    """Returns the corrected text, or labels and probabilities of errors; both if the run can do both."""

    format = RowFormat(takes_lines=True, needed=(_TEXT,))
    batches_at_once = 16

    def __init__(self, run: RunDir, experiment: Experiment) -> None:
        self._prepared = prepared_run(run)
        self._kind = experiment.task.kind

    def model(self) -> nn.Module:
        return self._prepared.model

    def sample(self, row: Any) -> str:
        return checked_text(row.get(_TEXT, row) if isinstance(row, dict) else row, _TEXT)

    def predict(
        self, model: nn.Module, samples: Sequence[str], settings: Evaluation, device: torch.device
    ) -> list[Any]:
        opened = replace(self._prepared, model=model, device=device, settings=settings)
        found: list[dict[str, Any]] = [{} for _ in samples]
        if self._kind in CORRECTORS:
            for each, text in zip(found, Corrector(opened).correct(samples), strict=True):
                each[_TEXT] = text
        if self._kind in DETECTORS:
            detector = Detector(opened)
            for each, probabilities in zip(found, detector.probabilities(samples), strict=True):
                labels = [int(one > THRESHOLD) for one in probabilities]
                if detector.of_texts:
                    each |= {"label": labels[0], "probability": probabilities[0]}
                else:
                    each |= {"labels": labels, "probabilities": probabilities}
        return found
