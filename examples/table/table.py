"""Regression on a table: progression of diabetes after a year, from ten measurements of each patient."""

import torch
from sklearn.datasets import load_diabetes
from torch import nn
from torch.utils.data import TensorDataset

#: Mean and standard deviation of the target over the training rows.
MEAN, DEVIATION = 152.0, 77.0

metrics = {"absolute_error": "min"}


def model(hidden: int = 32, dropout: float = 0.2):
    return nn.Sequential(nn.Linear(10, hidden), nn.SiLU(), nn.Dropout(dropout), nn.Linear(hidden, 1))


def data(split: str):
    columns, progression = load_diabetes(return_X_y=True)
    rows = {"train": slice(0, 342), "validation": slice(342, 392), "test": slice(392, None)}[split]
    inputs = torch.tensor(columns[rows]).float() * 20
    return TensorDataset(inputs, torch.tensor(progression[rows]).float())


def step(model, batch):
    progression = batch[1]
    predicted = predict(model, batch)
    return {
        "loss": ((predicted - progression) / DEVIATION) ** 2,
        "absolute_error": (predicted - progression).abs(),
    }


def predict(model, batch):
    return MEAN + DEVIATION * model(batch[0])[:, 0]
