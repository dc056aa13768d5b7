"""Points of which only x is known."""

from __future__ import annotations

import torch

from toolkit.analysis.prediction.predictor import RowFormat, UnfitRow
from toolkit.task import build_model


class PointsPredictor:
    format = RowFormat()
    batches_at_once = 1

    def __init__(self, run, experiment) -> None:
        self._experiment = experiment

    def model(self):
        return build_model(self._experiment)

    def sample(self, row):
        try:
            return float(row["x"])
        except (KeyError, TypeError, ValueError):
            raise UnfitRow(f"found {row!r}, expected a number under x") from None

    def predict(self, model, samples, settings, device):
        told = model(torch.tensor(samples, device=device))
        return [{"y": y} for y in told.tolist()]
