"""The graph of a batch of texts: its nodes are tokens and pieces of words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch

from toolkit.workloads.spelling.models.batches import NONE, within

#: The kinds of edges. `within`: between the tokens of a piece; `itself`: from each node to itself; `between`:
#: between the pieces of a text; `inside`: from a token to its piece.
RELATIONS = ("within", "itself", "between", "inside")


@dataclass(frozen=True, slots=True, kw_only=True)
class Complete:
    """Consecutive nodes that are fully connected with the other nodes of their text.

    first   number of the first node
    places  [n] position of each node in a flattened table with a row per text, padded at the end
    real    [texts, W] which positions of the table have a node
    """

    first: int
    places: torch.Tensor
    real: torch.Tensor

    @property
    def last(self) -> int:
        """Number of the node after the last one."""
        return self.first + len(self.places)

    def to(self, device: torch.device) -> Complete:
        """Copy to a device; the host does not wait for it."""
        return replace(self, places=_on(self.places, device), real=_on(self.real, device))


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """The nodes of all texts together: first the T tokens, then the N pieces.

    Each kind of edge is in `edges` or in `complete`, except `itself`, which each node has.

    tokens    [T] place of each token in the flattened batch
    pieces    [N] place of each piece in the flattened batch
    edges     [2, E] source and target of each edge, by kind
    complete  fully connected nodes, by kind; the number of their edges is the square of a text's length
    """

    tokens: torch.Tensor
    pieces: torch.Tensor
    edges: Mapping[str, torch.Tensor]
    complete: Mapping[str, Complete]

    def to(self, device: torch.device) -> Graph:
        """Copy to a device; the host does not wait for it."""
        return Graph(
            tokens=_on(self.tokens, device),
            pieces=_on(self.pieces, device),
            edges={name: _on(each, device) for name, each in self.edges.items()},
            complete={name: each.to(device) for name, each in self.complete.items()},
        )


def _on(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    return tensor.to(device, non_blocking=True)


def build_graph(
    pieces: torch.Tensor, words: torch.Tensor, *, between_pieces: bool, between_tokens: bool
) -> Graph:
    """Build the graph of a batch; tokens without a piece are not nodes.

    pieces, words   as in a DetectionBatch
    between_pieces  whether the pieces of a text are fully connected
    between_tokens  whether all tokens of a text are fully connected, instead of only those of a piece
    """
    belongs, exists = pieces != NONE, words != NONE
    numbers = (exists.flatten().cumsum(0) - 1).reshape(exists.shape)
    owners = numbers.gather(1, pieces.clamp(min=0))[belongs]
    tokens = len(owners)
    edges = {"inside": torch.stack([torch.arange(tokens, device=owners.device), owners + tokens])}
    complete = {}
    if between_tokens:
        complete["within"] = fully_connected(belongs.sum(1), 0)
    else:
        edges["within"] = pairs(torch.bincount(owners))
    if between_pieces:
        complete["between"] = fully_connected(exists.sum(1), tokens)
    return Graph(
        tokens=belongs.flatten().nonzero().squeeze(1),
        pieces=exists.flatten().nonzero().squeeze(1),
        edges=edges,
        complete=complete,
    )


def fully_connected(counts: torch.Tensor, first: int) -> Complete:
    """Connect the nodes of each text; counts [B]: the number of nodes of each text."""
    real = within(counts, int(counts.max()))
    return Complete(first=first, places=real.flatten().nonzero().squeeze(1), real=real)


def pairs(sizes: torch.Tensor) -> torch.Tensor:
    """Return all ordered pairs of different members of a group, [2, Σ n(n-1)]; the second member ascends.

    sizes  [G] sizes of the groups; members are numbered consecutively
    """
    width = torch.repeat_interleave(sizes, sizes)
    first = torch.repeat_interleave(sizes.cumsum(0) - sizes, sizes)
    member = torch.arange(len(width), device=sizes.device)
    targets = torch.repeat_interleave(member, width)
    block = torch.repeat_interleave(width.cumsum(0) - width, width)
    sources = first[targets] + torch.arange(len(targets), device=sizes.device) - block
    kept = sources != targets
    return torch.stack([sources[kept], targets[kept]])
