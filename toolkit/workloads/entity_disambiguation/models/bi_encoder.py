"""The bi-encoder: mention and candidates are encoded separately (as in Bootleg 1.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from toolkit.nlp.encoder import Encoder
from toolkit.workloads.entity_disambiguation.config import BiEncoder as BiEncoderConfig
from toolkit.workloads.entity_disambiguation.models.mention_batch import MentionBatch


class BiEncoder(nn.Module):
    """Scores of the candidates: dot products of mention and entity vectors, divided by a temperature.

    Both vectors are pooled from pretrained encoders; with `share`, one encoder is used for both. With
    normalised means and no hidden layer, the initial scores are the cosines of the pretrained sentence
    encoder. `prior` adds the log of the candidate's share of its alias, times a learnt weight that is
    initially 1. Shares are computed from scores plus one, so a candidate with score zero has a share, too.

    Differences from Bootleg: the loss is over the candidates of a mention, not over those of the batch, so
    batch size and world size do not change it. The default vectors are means, not those of the pooler.
    """

    def __init__(
        self, config: BiEncoderConfig, *, vocabulary_size: int, pad_id: int, like: Sequence[int], **_: Any
    ) -> None:
        super().__init__()
        self._config = config

        def encoder(layers: int | None, key: str) -> Encoder:
            return Encoder(
                config.path, layers=layers, dropout=config.dropout, vocabulary_size=vocabulary_size,
                like=like, pad_id=pad_id, key=f"model.{key}",
            )  # fmt: skip

        self.context = encoder(config.context_layers, "context_layers")
        self.entity: Encoder | None = None
        if not config.share and config.entity_vectors == "encode":
            self.entity = encoder(config.entity_layers, "entity_layers")
        size, hidden = self.context.size, config.hidden
        self.context_head = nn.Linear(size, hidden) if hidden else None
        self.entity_head = nn.Linear(size, hidden) if hidden and not config.share else None
        self.prior_weight = nn.Parameter(torch.ones(())) if config.prior else None

    @property
    def encoders(self) -> dict[str, Encoder]:
        """The trained encoders by name; the name is "" if there is only one."""
        return {"": self.context} if self.entity is None else {"context": self.context, "entity": self.entity}

    @property
    def entity_encoder(self) -> Encoder:
        """The encoder that reads the texts of entities."""
        return self.context if self.entity is None else self.entity

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile the encoders: a graph of the whole model would hold for one number of chunks only."""
        for encoder in self.encoders.values():
            encoder.compile(*args, **kwargs)

    def forward(self, rows: torch.Tensor, batch: MentionBatch) -> torch.Tensor:
        """Scores [b, K] of the mentions in these rows [b] of the batch; -inf for padding."""
        batch = batch.take(rows)
        pooling = self._config.pooling
        spans = batch.spans if pooling == "mention" else None
        context = self.context.pooled(batch.tokens, pooling, spans)
        mentions = self._finish(context, self.context_head)
        entities = self._finish(self.entities(batch), self.entity_head or self.context_head)
        # Not a matrix product, which autocast would compute in half precision.
        scores = (mentions[:, None] * entities[batch.places.clamp(min=0)]).sum(-1)
        scores = scores / self._config.temperature
        if self.prior_weight is not None:
            scores = scores + self.prior_weight * batch.priors
        return scores.masked_fill(batch.places < 0, -torch.inf)

    def entities(self, batch: MentionBatch) -> torch.Tensor:
        """The pooled vectors of the batch's distinct entities, [E, size]."""
        if batch.vectors is not None:
            return batch.vectors
        assert batch.entity_tokens is not None
        parts = [
            self.entity_encoder.pooled(batch.entity_tokens[first:last, :length], self._config.pooling)
            for first, last, length in batch.chunks
        ]
        return torch.cat(parts)

    def _finish(self, vectors: torch.Tensor, head: nn.Linear | None) -> torch.Tensor:
        if head is not None:
            vectors = head(vectors).tanh()
        # In single precision, because the temperature would amplify the rounding of half precision.
        return functional.normalize(vectors.float(), dim=-1) if self._config.normalize else vectors.float()
