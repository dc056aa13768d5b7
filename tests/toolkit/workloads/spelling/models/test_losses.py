"""Losses as sums."""

from __future__ import annotations

import torch
from torch.nn import functional

from toolkit.workloads.spelling.models.batches import NONE
from toolkit.workloads.spelling.models.losses import summed_cross_entropy

SCORES = torch.randn(3, 5, 3, generator=torch.Generator().manual_seed(0))
LABELS = torch.tensor([[0, 1, 2, NONE, 1], [2, 2, NONE, 0, 0], [NONE] * 5])
WEIGHTS = (1.0, 5.0, 5.0)


def test_the_loss_is_the_sum_over_all_labels() -> None:
    found = summed_cross_entropy(SCORES, LABELS)
    kept = LABELS != NONE
    mean = functional.cross_entropy(SCORES[kept], LABELS[kept])
    torch.testing.assert_close(found, mean * 8)


def test_weights_multiply_the_losses_of_their_classes() -> None:
    single = -SCORES[0, 1].log_softmax(0)[1]
    torch.testing.assert_close(summed_cross_entropy(SCORES[0, 1:2], LABELS[0, 1:2], WEIGHTS), 5 * single)
