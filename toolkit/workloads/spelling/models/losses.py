"""Losses as sums, and right labels."""

from __future__ import annotations

import torch
from torch.nn import functional

from toolkit.workloads.spelling.models.batches import NONE


def summed_cross_entropy(
    scores: torch.Tensor, labels: torch.Tensor, weights: tuple[float, ...] | None = None
) -> torch.Tensor:
    """Cross-entropy of scores [..., C] against labels [...], summed over the labels that are not NONE.

    weights  weights of the classes, for the sum only. The loss is divided by the number of labels, so that
             a batch's share of a step does not depend on its classes.
    """
    flat, wanted = scores.flatten(0, -2).float(), labels.flatten()
    weight = None if weights is None else _like(flat, weights)
    return functional.cross_entropy(flat, wanted, weight=weight, ignore_index=NONE, reduction="sum")


def losses_of_texts(
    scores: torch.Tensor, labels: torch.Tensor, weights: tuple[float, ...] | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cross-entropy of scores [B, N, C] against labels [B, N] that are not NONE, summed for each text.

    Returns the sums [B] and the numbers of labels [B]; weights as for `summed_cross_entropy`.
    """
    weight = None if weights is None else _like(scores, weights)
    flat = functional.cross_entropy(
        scores.flatten(0, 1), labels.flatten(), weight=weight, ignore_index=NONE, reduction="none"
    )
    return flat.view(labels.shape).sum(1), (labels != NONE).sum(1)


def right_labels(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return which labels [...] are known and have the highest score [..., C]."""
    return (scores.argmax(-1) == labels) & (labels != NONE)


def loss_sums(total: torch.Tensor, count: int) -> torch.Tensor:
    """Return a summed loss and its count, the first two sums of a score: [2] float64."""
    return torch.stack([total.double(), total.new_tensor(count, dtype=torch.float64)])


def _like(tensor: torch.Tensor, values: tuple[float, ...]) -> torch.Tensor:
    """Return values of the same type on the same device; the host does not wait for it."""
    return torch.tensor(values, dtype=tensor.dtype).to(tensor.device, non_blocking=True)
