"""Hiding tokens in training, so that the model reads the text around them."""

from __future__ import annotations

import torch


def hide(
    tokens: torch.Tensor,
    spans: torch.Tensor,
    probabilities: torch.Tensor,
    mask_id: int,
    spared: torch.Tensor | None = None,
) -> torch.Tensor:
    """Replace tokens [B, L] within spans [B, 2] by mask_id, independently, with its row's probability [B].

    Drawn from torch's CPU generator, so that every device hides the same. spared: tokens that stay.
    """
    draws = torch.rand(tokens.shape).to(tokens.device, non_blocking=True)
    place = torch.arange(tokens.shape[1], device=tokens.device)
    inside = (place >= spans[:, :1]) & (place < spans[:, 1:])
    hidden = inside & (draws < probabilities[:, None])
    if spared is not None:
        hidden &= ~torch.isin(tokens, spared)
    return torch.where(hidden, mask_id, tokens)
