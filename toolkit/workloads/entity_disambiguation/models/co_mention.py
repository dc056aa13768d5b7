"""The co-mention model: candidates are vectors that attend to the words and to one another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from toolkit.nlp.encoder import Encoder, mean_of
from toolkit.workloads.entity_disambiguation.config import CoMention as CoMentionConfig
from toolkit.workloads.entity_disambiguation.models.mention_batch import MentionBatch

#: The weight of a candidate itself in the graph of connected candidates, before the softmax (Bootleg 1.0.5).
_SELF_WEIGHT = 2.0


class CoMention(nn.Module):
    """Scores of a mention's candidates, with the candidates of the sentence's other mentions.

    The vector of a candidate is a linear layer over the vectors of its types, the vectors of its relations
    (each merged by additive attention), and the frozen vector of its text (`vectors` of the batch). In every
    stage each candidate attends to the words and to the candidates of the *other* mentions, and the mention
    attends to its own candidates. The results are added and normalised. The graph term averages a candidate
    with the candidates of other mentions that a relation connects to it. A candidate's score is
    the maximum over all stages with and without the graph term, plus the cosine of the mention's text and its
    own text divided by a temperature. `prior` adds the weighted log of its share.

    The model follows Bootleg 1.0.5 with these differences:
    - Entities have no learnt vectors, so unseen entities have no disadvantage, and the size is constant.
    - It does not predict types.
    - The cosine makes the initial scores those of the encoder.
    - The loss is over the final scores only, not one loss for each stage.
    - A sample is one mention. Other mentions take part with their candidates, but without words and vector.
    - There is no position encoding, because markers show the position of the mention.
    """

    def __init__(
        self, config: CoMentionConfig, *, vocabulary_size: int, pad_id: int, like: Sequence[int],
        types: int, relations: int, **_: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        self._config = config
        hidden = config.hidden
        self.context = Encoder(
            config.path, layers=config.context_layers, dropout=config.dropout,
            vocabulary_size=vocabulary_size, like=like, pad_id=pad_id, key="model.context_layers",
        )  # fmt: skip
        size = self.context.size
        self.words = nn.Linear(size, hidden)
        self.types = _Merged(types, config.type_dim)
        self.relations = _Merged(relations, config.relation_dim)
        known = config.type_dim + config.relation_dim + (size if config.entity_text else 0)
        self.payload = nn.Sequential(nn.Linear(known, hidden), nn.LayerNorm(hidden))
        self.stages = nn.ModuleList(
            _Stage(hidden, config.heads, config.dropout) for _ in range(config.stages)
        )
        self.score = nn.Sequential(nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, 1))
        self.prior_weight = nn.Parameter(torch.ones(())) if config.prior else None

    @property
    def encoders(self) -> dict[str, Encoder]:
        """The trained encoders by name; the name is "" because there is only one."""
        return {"": self.context}

    def forward(self, rows: torch.Tensor, batch: MentionBatch) -> torch.Tensor:
        """Scores [b, K] of the mentions in these rows [b] of the batch; -inf for padding."""
        batch = batch.take(rows)
        assert batch.types is not None
        assert batch.relations is not None
        assert batch.connected is not None
        states = self.context(batch.tokens)
        words = self.words(states)
        text = self.context.mask(batch.tokens)
        places, own = _all_places(batch)
        facts = [self.types(batch.types), self.relations(batch.relations)]
        if self._config.entity_text:
            assert batch.vectors is not None
            facts.append(batch.vectors.to(words.dtype))
        candidates = self.payload(torch.cat(facts, dim=-1))[places.clamp(min=0)]
        known = places >= 0
        mention = _ends(words, batch.spans)
        graph = _graph(batch.connected, places, own)
        best = candidates.new_full(batch.places.shape, -torch.inf, dtype=torch.float32)
        for stage in self.stages:
            candidates = stage(candidates, known, own, words, text, mention)
            linked = graph.to(candidates.dtype) @ candidates
            for each in (candidates, (candidates + linked) / 2):
                best = torch.maximum(best, self.score(each[:, : batch.places.shape[1]]).squeeze(-1).float())
        scores: torch.Tensor = best + self._cosine(states, text, batch)
        if self.prior_weight is not None:
            scores = scores + self.prior_weight * batch.priors
        return scores.masked_fill(batch.places < 0, -torch.inf)

    def _cosine(self, states: torch.Tensor, text: torch.Tensor, batch: MentionBatch) -> torch.Tensor:
        if not self._config.entity_text:
            return torch.zeros_like(batch.priors)
        assert batch.vectors is not None
        whole = functional.normalize(mean_of(states, text).float(), dim=-1)
        entities = functional.normalize(batch.vectors.float(), dim=-1)[batch.places.clamp(min=0)]
        # Not a matrix product, which autocast would compute in half precision.
        cosine: torch.Tensor = (whole[:, None] * entities).sum(-1)
        return cosine / self._config.temperature


class _Merged(nn.Module):
    """The vector of a set of numbers from 1: the sum of their vectors, weighted by additive attention."""

    def __init__(self, count: int, size: int) -> None:
        super().__init__()
        # 0 is padding, and stands for names that training has not seen.
        self.vectors = nn.Embedding(count + 1, size, padding_idx=0)
        self.hidden = nn.Linear(size, size)
        self.weight = nn.Linear(size, 1, bias=False)

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        """Map [E, T] to [E, size]; zero for an empty row."""
        vectors = self.vectors(numbers)
        weights = self.weight(self.hidden(vectors).tanh()).squeeze(-1)
        merged: torch.Tensor = (_softmax(weights, numbers > 0).unsqueeze(1) @ vectors).squeeze(1)
        return merged


class _Stage(nn.Module):
    def __init__(self, hidden: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.phrase = _Attention(hidden, heads)
        self.others = _Attention(hidden, heads)
        self.mention = _Attention(hidden, heads)
        self.norm = nn.LayerNorm(hidden)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        candidates: torch.Tensor,
        known: torch.Tensor,
        own: torch.Tensor,
        words: torch.Tensor,
        text: torch.Tensor,
        mention: torch.Tensor,
    ) -> torch.Tensor:
        """Return the new candidates [B, C, H] of all mentions.

        known    [B, C] which candidates are not padding
        own      [C, C] which candidates are of the same mention
        words    [B, L, H]
        text     [B, L] which words are not padding
        mention  [B, H]
        """
        phrase = self.phrase(candidates, words, text[:, None])
        others = self.others(candidates, candidates, known[:, None] & ~own)
        is_first = own[0]
        summed = self.mention(mention[:, None], candidates, (known & is_first)[:, None])
        added = phrase + others + (mention[:, None] + summed) * is_first[:, None]
        normed: torch.Tensor = self.norm(candidates + self.dropout(added))
        return normed


class _Attention(nn.Module):
    """Multi-head attention, which gives zero if nothing is allowed."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self._heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(hidden, hidden, bias=False) for _ in range(4))

    def forward(self, queries: torch.Tensor, sources: torch.Tensor, allowed: torch.Tensor) -> torch.Tensor:
        """Map queries [B, Q, H], sources [B, S, H] and allowed [B, Q or 1, S] to [B, Q, H]."""
        query, key, value = (
            part.unflatten(-1, (self._heads, -1)).transpose(1, 2)
            for part in (self.query(queries), self.key(sources), self.value(sources))
        )
        scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
        found = _softmax(scores, allowed[:, None]) @ value
        answer: torch.Tensor = self.out(found.transpose(1, 2).flatten(2))
        return answer


def _softmax(scores: torch.Tensor, allowed: torch.Tensor) -> torch.Tensor:
    """Softmax over the allowed entries of the last axis; zeros if nothing is allowed."""
    lowest = torch.finfo(scores.dtype).min
    weights = scores.masked_fill(~allowed, lowest).softmax(-1)
    return weights * allowed


def _all_places(batch: MentionBatch) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of all mentions' candidates, own candidates first [B, C]; which are of one mention [C, C]."""
    places, width = batch.places, batch.places.shape[1]
    if batch.others is not None:
        places = torch.cat([places, batch.others.flatten(1)], dim=1)
    of = torch.arange(places.shape[1], device=places.device) // width
    return places, of[:, None] == of[None, :]


def _graph(connected: torch.Tensor, places: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
    """Weights of a candidate and of its connected candidates of other mentions, [B, C, C]; rows sum to 1."""
    known, at = places >= 0, places.clamp(min=0)
    linked = connected[at[:, :, None], at[:, None, :]] & known[:, :, None] & known[:, None, :] & ~own
    same = torch.eye(places.shape[1], dtype=torch.bool, device=places.device)
    weights = torch.where(linked, 1.0, 0.0) + _SELF_WEIGHT * same
    return _softmax(weights, linked | same)


def _ends(words: torch.Tensor, spans: torch.Tensor) -> torch.Tensor:
    """Mean of the first and the last word of each mention, [B, H]."""
    row = torch.arange(len(words), device=words.device)
    last = (spans[:, 1] - 1).clamp(min=0)
    return (words[row, spans[:, 0]] + words[row, last]) / 2
