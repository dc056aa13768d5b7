"""A small file of a user with three functions, which needs no data."""

from __future__ import annotations

POINTS = """\
import torch
from torch import nn
from torch.utils.data import TensorDataset


def model(width: int = 8):
    return nn.Sequential(nn.Linear(4, width), nn.Tanh(), nn.Linear(width, 2))


def data(split: str):
    x = torch.randn(40, 4, generator=torch.Generator().manual_seed(1))
    return TensorDataset(x, (x[:, 0] > 0).long())


def step(model, batch):
    x, y = batch
    return {"loss": nn.functional.cross_entropy(model(x), y, reduction="none")}
"""
