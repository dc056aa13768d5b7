"""Detection by a graph network over tokens and words."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from toolkit.workloads.spelling.config.models import DetectionGraph as Config
from toolkit.workloads.spelling.data.texts.features import FEATURES
from toolkit.workloads.spelling.models.batches import DetectionBatch
from toolkit.workloads.spelling.models.detection import CLASSES, pooled
from toolkit.workloads.spelling.models.generation.decoder import readable
from toolkit.workloads.spelling.models.graph import RELATIONS, Complete, Graph, build_graph
from toolkit.workloads.spelling.models.layers import TokenEmbedding, group_means, perceptron


class DetectionGraph(nn.Module):
    """Scores of right and wrong for each word, or for each text, from the nodes of its pieces.

    The node of a piece starts as the mean of its tokens' vectors; a linear map of its features may be added.
    """

    def __init__(self, config: Config, *, vocabulary_size: int, of_texts: bool = False, **_: object) -> None:
        """of_texts: score texts instead of words."""
        super().__init__()
        size = config.hidden_dim
        self._config, self._of_texts = config, of_texts
        self.embedding = TokenEmbedding(vocabulary_size, size, config.dropout)
        self.features = nn.Linear(len(FEATURES), size) if config.word_features else None
        self.layers = nn.ModuleList(
            GraphLayer(size, config.heads, config.dropout) for _ in range(config.num_layers)
        )
        self.head = perceptron(size, size, CLASSES, config.dropout)

    def forward(self, rows: torch.Tensor, batch: DetectionBatch) -> torch.Tensor:
        """Scores of these rows [b] of the batch: [b, W, 2] of words, [b, 2] of texts."""
        batch = batch.take(rows)
        # Built on the host if possible, because the sizes of tensors depend on the number of edges.
        graph = build_graph(
            batch.pieces if batch.host_pieces is None else batch.host_pieces,
            batch.words if batch.host_words is None else batch.host_words,
            between_pieces=self._config.word_fully_connected,
            between_tokens=self._config.token_fully_connected,
        ).to(batch.tokens.device)
        tokens = self.embedding(batch.tokens)
        pieces = group_means(tokens, batch.pieces, batch.words.shape[1])
        if self.features is not None:
            assert batch.features is not None
            pieces = pieces + self.features(batch.features.to(pieces.dtype))
        flat = torch.cat([tokens.flatten(0, 1)[graph.tokens], pieces.flatten(0, 1)[graph.pieces]])
        for layer in self.layers:
            flat = layer(flat, graph)
        final = torch.zeros_like(pieces).flatten(0, 1)
        final = final.index_copy(0, graph.pieces, flat[len(graph.tokens) :].to(final.dtype))
        means = pooled(final.view_as(pieces), batch.words, batch.word_count, self._of_texts)
        scores: torch.Tensor = self.head(means)
        return scores


class GraphLayer(nn.Module):
    """Attention of each node along each kind of edge, summed, added to the node and normalised.

    Each kind of node has separate queries, keys, values and output maps; each kind of edge has a separate map
    of messages. The weights of a node's edges of one kind sum to 1. This is close to the heterogeneous graph
    transformer (Hu et al. 2020), which normalises over all kinds of edges together.
    """

    def __init__(self, size: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.queries, self.keys, self.values, self.output = (ByKind(size) for _ in range(4))
        self.messages = nn.ModuleDict({name: nn.Linear(size, size) for name in RELATIONS})
        self._heads = heads
        self.dropout = nn.Dropout(dropout)
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(2))

    def forward(self, nodes: torch.Tensor, graph: Graph) -> torch.Tensor:
        """Map nodes [T + N, d] to nodes."""
        tokens = len(graph.tokens)
        queries, keys, values = (each(nodes, tokens) for each in (self.queries, self.keys, self.values))
        # Each node has one edge of this kind, so its weight is 1.
        total = self.messages["itself"](values)
        dropout = self.dropout.p if self.training else 0.0
        for name, edges in graph.edges.items():
            messages = self.messages[name](values)
            total = total + edge_attention(queries, keys, messages, edges, self._heads, dropout)
        for name, part in graph.complete.items():
            messages = self.messages[name](values)
            total = total + complete_attention(queries, keys, messages, part, self._heads, dropout)
        added = nodes + self.dropout(self.output(total, tokens))
        parts = [norm(part) for norm, part in zip(self.norms, _split(added, tokens), strict=True)]
        return torch.cat(parts)


class ByKind(nn.Module):
    """A linear map for tokens, and another linear map for pieces."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.maps = nn.ModuleList(nn.Linear(size, size) for _ in range(2))

    def forward(self, nodes: torch.Tensor, tokens: int) -> torch.Tensor:
        """Map nodes [T + N, d]; the first `tokens` nodes are tokens."""
        parts = [each(part) for each, part in zip(self.maps, _split(nodes, tokens), strict=True)]
        return torch.cat(parts)


def edge_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    edges: torch.Tensor,
    heads: int,
    dropout: float = 0.0,
) -> torch.Tensor:
    """Scaled dot-product attention of each node over its incoming edges, [nodes, d]; zero without an edge.

    edges  [2, E] source and target of each edge
    """
    q, k, v = (each.unflatten(-1, (heads, -1)) for each in (queries, keys, values))
    begin, end = edges
    # In single precision, because sums in half precision over many edges would lose digits.
    products = q.index_select(0, end).float() * k.index_select(0, begin).float()
    weights = softmax_by_end(products.sum(-1) * q.shape[-1] ** -0.5, end, len(q))
    weighted = functional.dropout(weights, dropout).unsqueeze(-1) * v.index_select(0, begin).float()
    at = end[:, None, None].expand_as(weighted)
    total = weighted.new_zeros(len(q), *weighted.shape[1:]).scatter_add(0, at, weighted)
    found: torch.Tensor = total.flatten(-2)
    return found


def softmax_by_end(scores: torch.Tensor, end: torch.Tensor, nodes: int) -> torch.Tensor:
    """Softmax of scores [E, heads] over the edges with the same target, end [E]."""
    at = end[:, None].expand_as(scores)
    highest = scores.detach().new_zeros(nodes, scores.shape[1])
    highest = highest.scatter_reduce(0, at, scores.detach(), "amax", include_self=False)
    shares = (scores - highest.index_select(0, end)).exp()
    sums = shares.new_zeros(nodes, shares.shape[1]).scatter_add(0, at, shares)
    return shares / sums.index_select(0, end)


def complete_attention(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    part: Complete,
    heads: int,
    dropout: float = 0.0,
) -> torch.Tensor:
    """Like `edge_attention`, over all other nodes of a node's text, as a product of matrices, [nodes, d].

    Zero for nodes outside of the part, and for a node that is alone in its text.
    """
    stacked = torch.stack([queries, keys, values], dim=1)[part.first : part.last]
    real = part.real
    table = stacked.new_zeros(real.numel(), *stacked.shape[1:]).index_copy(0, part.places, stacked)
    q, k, v = table.unflatten(0, real.shape).unflatten(-1, (heads, -1)).permute(2, 0, 3, 1, 4)
    alone = torch.eye(real.shape[1], dtype=torch.bool, device=real.device)
    mask = real[:, None, :] & ~alone
    read = functional.scaled_dot_product_attention(
        q, k, v, attn_mask=readable(mask)[:, None], dropout_p=dropout
    )
    total = read.transpose(1, 2).flatten(2) * mask.any(-1, keepdim=True)
    outside = (0, 0, part.first, len(queries) - part.last)
    found: torch.Tensor = functional.pad(total.flatten(0, 1)[part.places], outside)
    return found


def _split(nodes: torch.Tensor, tokens: int) -> tuple[torch.Tensor, torch.Tensor]:
    return nodes[:tokens], nodes[tokens:]
