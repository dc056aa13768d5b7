"""Handwritten digits as images, shifted at random in training and read by worker processes."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import Dataset


class Images(Dataset):
    """Images of 1 × 8 × 8 with their digits. Each read shifts an image by up to `shift` pixels."""

    def __init__(self, images, labels, shift):
        self.images, self.labels, self.shift = images, labels, shift

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        down, right = torch.randint(-self.shift, self.shift + 1, (2,)).tolist()
        image = torch.tensor(self.images[index] / 16).float()
        return torch.roll(image, (down, right), (0, 1))[None], int(self.labels[index])


def model(channels: int = 16, dropout: float = 0.1):
    return nn.Sequential(
        nn.Conv2d(1, channels, 3, padding=1),
        nn.GroupNorm(4, channels),
        nn.ReLU(),
        nn.Conv2d(channels, 2 * channels, 3, padding=1),
        nn.GroupNorm(4, 2 * channels),
        nn.ReLU(),
        nn.MaxPool2d(4),
        nn.Flatten(),
        nn.Dropout(dropout),
        nn.Linear(8 * channels, 10),
    )


def data(split: str, shift: int = 1):
    digits = load_digits()
    part = np.arange(len(digits.target)) % 10
    chosen = {"train": part < 8, "validation": part == 8, "test": part == 9}[split]
    return Images(digits.images[chosen], digits.target[chosen], shift if split == "train" else 0)


def step(model, batch):
    images, labels = batch
    scores = model(images)
    loss = F.cross_entropy(scores, labels, reduction="none")
    return {"loss": loss, "accuracy": scores.argmax(1) == labels}


def predict(model, batch):
    return model(batch[0]).softmax(1)
