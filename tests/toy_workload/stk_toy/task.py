"""Learning a line."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import nn

from toolkit.task import Loss, Score, build_model


class LineModel(nn.Module):
    def __init__(self, config) -> None:
        super().__init__()
        layers = [nn.Linear(1, 1)]
        if config.hidden:
            layers = [
                nn.Linear(1, config.hidden),
                nn.Tanh(),
                nn.Dropout(config.dropout),
                nn.Linear(config.hidden, 1),
            ]
        self.layers = nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x[:, None])[:, 0]


class PointsTask:
    train_sums = ("distance",)
    score_sums = ("loss", "count", "distance")

    def __init__(self, experiment, points=None) -> None:
        self._experiment = experiment
        points = points or experiment.data.prepare(lambda stage, done, total: None)
        self.prepared, self.fingerprint, self.summary = points.path, points.fingerprint, points.description()
        self.splits = {name: points.split(name) for name in points.splits}

    @classmethod
    def prepare(cls, experiment, progress=None) -> str:
        return experiment.data.prepare(progress or (lambda stage, done, total: None)).summary()

    def on(self, data, progress=None):
        other = PointsTask(replace(self._experiment, data=data))
        whole = [np.concatenate([getattr(each, axis) for each in other.splits.values()]) for axis in "xy"]
        other.splits = {"test": type(self.splits["train"])(*whole)}
        return other

    def model(self) -> nn.Module:
        return build_model(self._experiment)

    def collate(self, split, indices, device):
        points = self.splits[split]
        return tuple(torch.from_numpy(axis[indices]).to(device) for axis in (points.x, points.y))

    def loss(self, model, batch) -> Loss:
        wrong = model(batch[0]) - batch[1]
        count = len(wrong)
        return Loss(
            total=wrong.square().sum(),
            count=count,
            tokens=count,
            sums=wrong.detach().abs().sum()[None].double(),
        )

    def score(self, model, batch) -> Score:
        with torch.no_grad():
            told = model(batch[0])
        wrong = (told - batch[1]).double()
        sums = [wrong.square().sum(), torch.tensor(float(len(wrong))), wrong.abs().sum()]
        return Score(sums=torch.stack([each.double() for each in sums]), outputs={"told": told[:, None]})

    def train_metrics(self, sums, count) -> dict[str, float]:
        return {"distance": sums["distance"] / count}

    def metrics_need_outputs(self, split) -> bool:
        return False

    def metrics(self, split, evaluation) -> dict[str, float]:
        loss, count, distance = evaluation.sums
        return {"loss": float(loss / count), "distance": float(distance / count)}

    def write_report(self, run, split, evaluation) -> None:
        run.artifacts.mkdir(exist_ok=True)
        np.savetxt(run.artifacts / f"{split}_predictions.txt", evaluation.outputs["told"].rows)

    def export(self, run, model) -> None:
        pass
