"""The graph of a batch of texts: tokens and pieces of words as nodes, and the edges between them."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from toolkit.models.spelling.batches import NONE, Words

#: The kinds of edges. within: between the tokens of a piece; itself: from every node to itself; between:
#: between the pieces of a text; inside: from a token to its piece.
RELATIONS = ("within", "itself", "between", "inside")


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Nodes and edges of all texts together; the T tokens are numbered first, then the N pieces.

    tokens  [T] place of each token in the flattened batch
    pieces  [N] place of each piece in the flattened batch
    owners  [T] piece of each token, below N
    edges   by relation: [2, E] source and target of each edge, by ascending target
    """

    tokens: torch.Tensor
    pieces: torch.Tensor
    owners: torch.Tensor
    edges: dict[str, torch.Tensor]


def build_graph(structure: Words, *, between_pieces: bool = True, between_tokens: bool = False) -> Graph:
    """Build the graph of a batch; what belongs to no piece is no node.

    between_pieces  whether the pieces of a text are fully connected
    between_tokens  whether the tokens of a text are, and not those of a piece alone
    """
    belongs, exists = structure.pieces != NONE, structure.words != NONE
    numbers = (exists.flatten().cumsum(0) - 1).reshape(exists.shape)
    owners = numbers.gather(1, structure.pieces.clamp(min=0))[belongs]
    count = int(exists.sum())
    tokens_of_text, pieces_of_text = belongs.sum(1), exists.sum(1)
    tokens_of_piece = torch.bincount(owners, minlength=count)
    total = len(owners) + count
    nodes = torch.arange(total, device=owners.device)
    nothing = owners.new_empty(2, 0)
    return Graph(
        tokens=belongs.flatten().nonzero().squeeze(1),
        pieces=exists.flatten().nonzero().squeeze(1),
        owners=owners,
        edges={
            "within": pairs(tokens_of_text if between_tokens else tokens_of_piece),
            "itself": torch.stack([nodes, nodes]),
            "between": pairs(pieces_of_text) + len(owners) if between_pieces else nothing,
            "inside": torch.stack([nodes[: len(owners)], owners + len(owners)]),
        },
    )


def pairs(sizes: torch.Tensor) -> torch.Tensor:
    """All ordered pairs of different members of the same group, [2, Σ n(n-1)], by ascending second.

    sizes  [G] of the groups; their members are numbered one after the other
    """
    width = torch.repeat_interleave(sizes, sizes)
    first = torch.repeat_interleave(sizes.cumsum(0) - sizes, sizes)
    member = torch.arange(len(width), device=sizes.device)
    targets = torch.repeat_interleave(member, width)
    block = torch.repeat_interleave(width.cumsum(0) - width, width)
    sources = first[targets] + torch.arange(len(targets), device=sizes.device) - block
    kept = sources != targets
    return torch.stack([sources[kept], targets[kept]])
