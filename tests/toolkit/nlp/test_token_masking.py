"""Masking of tokens during training."""

from __future__ import annotations

import torch

from toolkit.nlp.token_masking import hide

MASK = 99


def test_tokens_in_the_span_are_masked_with_the_probability_of_their_row() -> None:
    torch.manual_seed(0)
    rows = 20000
    tokens = torch.arange(1, 6).repeat(2 * rows, 1)
    spans = torch.tensor([[1, 3]]).repeat(2 * rows, 1)
    probabilities = torch.tensor([0.5, 0.95]).repeat_interleave(rows)
    found = hide(tokens, spans, probabilities, MASK) == MASK
    assert not found[:, [0, 3, 4]].any()
    rates = found[:, 1:3].double().reshape(2, rows, 2).mean(1)
    torch.testing.assert_close(rates, torch.tensor([[0.5, 0.5], [0.95, 0.95]]).double(), rtol=0, atol=0.02)
    both = found[:rows, 1:3].all(1).double().mean().item()
    assert abs(both - 0.25) < 0.02, "each by itself"


def test_spared_tokens_are_not_masked() -> None:
    tokens = torch.tensor([[7, 8, 7]])
    found = hide(tokens, torch.tensor([[0, 3]]), torch.ones(1), MASK, torch.tensor([7]))
    assert found.tolist() == [[7, MASK, 7]]


def test_the_same_seed_masks_the_same_tokens() -> None:
    tokens, spans = torch.ones(4, 50, dtype=torch.int64), torch.tensor([[0, 50]] * 4)
    drawn = []
    for _ in range(2):
        torch.manual_seed(3)
        drawn.append(hide(tokens, spans, torch.full((4,), 0.5), MASK))
    assert torch.equal(*drawn)
