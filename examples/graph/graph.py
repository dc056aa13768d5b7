"""A graph network predicts which of two clubs each member of a karate club joined, from their contacts.

A sample is a node. The model has the whole graph, computes with all nodes, and returns the scores of those in
the batch.
"""

import networkx
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import TensorDataset


class GraphNetwork(nn.Module):
    """Two graph convolutions (Kipf and Welling, 2017): A H W, A normalized by the degrees of both ends."""

    def __init__(self, hidden, dropout):
        super().__init__()
        weights = torch.tensor(networkx.to_numpy_array(networkx.karate_club_graph(), weight=None)).float()
        weights += torch.eye(len(weights))
        degrees = weights.sum(1)
        self.register_buffer("adjacency", weights / (degrees[:, None] * degrees).sqrt(), persistent=False)
        self.first = nn.Linear(len(weights), hidden)
        self.second = nn.Linear(hidden, 2)
        self.dropout = nn.Dropout(dropout)

    def forward(self, nodes):
        # The features of the nodes are the identity matrix, so their product with the weights is the weights.
        hidden = F.relu(self.adjacency @ self.first.weight.T + self.first.bias)
        return (self.adjacency @ self.second(self.dropout(hidden)))[nodes]


def model(hidden: int = 16, dropout: float = 0.2):
    return GraphNetwork(hidden, dropout)


def data(split: str):
    clubs = networkx.get_node_attributes(networkx.karate_club_graph(), "club")
    labels = torch.tensor([clubs[node] == "Officer" for node in sorted(clubs)]).long()
    # Training has the labels of the two leaders and six others.
    known = torch.zeros(len(labels), dtype=torch.bool)
    known[[0, 33, 1, 2, 8, 13, 14, 31]] = True
    chosen = {"train": known, "validation": ~known, "test": ~known}[split]
    nodes = torch.arange(len(labels))[chosen]
    return TensorDataset(nodes, labels[chosen])


def step(model, batch):
    nodes, labels = batch
    scores = model(nodes)
    loss = F.cross_entropy(scores, labels, reduction="none")
    return {"loss": loss, "accuracy": scores.argmax(1) == labels}
