"""Masks and positions of words that form one sequence, and the same words as separate rows."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from toolkit.workloads.spelling.models.batches import NONE, within
from toolkit.workloads.spelling.models.generation.decoder import Context, causal


def block_causal(words: torch.Tensor) -> torch.Tensor:
    """Mask [B, T, T]: a place may attend to itself and to the places before it in the same word.

    words  [B, T] word of each place; padding attends to padding
    """
    return (words[:, :, None] == words[:, None, :]) & causal(words.shape[1], words.device)


def block_cross(targets: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
    """Mask [B, T, L]: a place of a target's word [B, T] may attend to the tokens of the same word [B, L]."""
    return (targets[:, :, None] == words[:, None, :]) & (targets != NONE)[:, :, None]


def first_places(words: torch.Tensor, count: int) -> torch.Tensor:
    """Place of the first token of each of `count` words, [B, count]; 0 for a word without tokens."""
    member = words[:, None, :] == torch.arange(count, device=words.device)[:, None]
    return member.to(torch.uint8).argmax(-1)


def block_positions(targets: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
    """Positions [B, T] of the targets' tokens: in each word they count from the word's first input token.

    targets  [B, T] word of each token that is written
    words    [B, L] word of each token that is read
    """
    # An upper bound of the number of words. For the exact number, the host would have to wait for the device.
    count = words.shape[1]
    place = torch.arange(targets.shape[1], device=targets.device)
    at = targets.clamp(min=0)
    begins = first_places(targets, count).gather(1, at)
    positions = first_places(words, count).gather(1, at) + place - begins
    return positions.masked_fill(targets == NONE, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """The words of a batch as separate rows.

    texts    [N] text of each word
    first    [N] place of its first token in the text
    index    [N, M] places of its tokens in the flattened batch, padded
    lengths  [N] number of its tokens
    """

    texts: torch.Tensor
    first: torch.Tensor
    index: torch.Tensor
    lengths: torch.Tensor

    def context(self, states: torch.Tensor) -> Context:
        """Return the states of the words' tokens, a row per word, from the states of the texts [B, L, d]."""
        mask = within(self.lengths, self.index.shape[1])[:, None]
        return Context(states=states.flatten(0, 1)[self.index], mask=mask)


def blocks_of(words: torch.Tensor) -> Blocks:
    """Cut texts into words; words [B, L]: the word of each token, ascending in a text."""
    texts, places = (words != NONE).nonzero(as_tuple=True)
    pairs = torch.stack([texts, words[texts, places]], dim=1)
    found, lengths = torch.unique_consecutive(pairs, dim=0, return_counts=True)
    begins = lengths.cumsum(0) - lengths
    width = int(lengths.max()) if len(lengths) else 0
    index = begins[:, None] + torch.arange(width, device=words.device)
    flat = (texts * words.shape[1] + places)[index.clamp(max=max(len(texts) - 1, 0))]
    return Blocks(texts=found[:, 0], first=places[begins], index=flat, lengths=lengths)
