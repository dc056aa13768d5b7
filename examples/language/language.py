"""A causal language model of characters, on the descriptions of the data sets that scikit-learn ships.

The loss has a value for each character, so `step` returns weights: 0 for padding.
"""

from importlib.resources import files

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

PADDING = 0


class Transformer(nn.Module):
    def __init__(self, width, layers, longest):
        super().__init__()
        self.characters = nn.Embedding(256, width)
        self.places = nn.Embedding(longest, width)
        layer = nn.TransformerEncoderLayer(
            width, 4, 4 * width, dropout=0.1, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.output = nn.Linear(width, 256)

    def forward(self, characters):
        length = characters.shape[1]
        future = torch.ones(length, length, dtype=torch.bool, device=characters.device).triu(1)
        hidden = self.characters(characters) + self.places.weight[:length]
        return self.output(self.layers(hidden, mask=future))


def model(width: int = 64, layers: int = 2, longest: int = 128):
    return Transformer(width, layers, longest)


def data(split: str, length: int = 128):
    folder = files("sklearn.datasets.descr")
    texts = sorted((each.name, each.read_bytes()) for each in folder.iterdir() if each.name.endswith(".rst"))
    whole = b"\n".join(text for _, text in texts)
    pieces = [list(whole[begin : begin + length + 1]) for begin in range(0, len(whole) - 1, length)]
    parts = {"train": (0, 8), "validation": (8, 9), "test": (9, 10)}
    first, last = parts[split]
    return [torch.tensor(piece) for place, piece in enumerate(pieces) if first <= place % 10 < last]


def collate(samples):
    return pad_sequence(samples, batch_first=True, padding_value=PADDING)


def step(model, batch):
    inputs, targets = batch[:, :-1], batch[:, 1:]
    scores = model(inputs)
    loss = F.cross_entropy(scores.transpose(1, 2), targets, reduction="none")
    return {"loss": loss, "accuracy": scores.argmax(-1) == targets, "weights": (targets != PADDING).float()}
