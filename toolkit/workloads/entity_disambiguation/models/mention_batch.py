"""A batch of mentions with their candidates, as tensors on a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, cast

import numpy as np
import torch
from torch import nn

from toolkit.data.ragged import Array
from toolkit.workloads.entity_disambiguation.config import CoMention
from toolkit.workloads.entity_disambiguation.data.samples import layout
from toolkit.workloads.entity_disambiguation.data.samples.known import Known
from toolkit.workloads.entity_disambiguation.data.samples.samples import MentionSamples, Tables

#: Entities that are encoded together: first, last (exclusive), number of tokens of the longest.
Chunk = tuple[int, int, int]

#: Most tokens of a chunk, padding included. A chunk ends earlier if lengths fall by half.
_CHUNK_TOKENS = 8192
_SMALL = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class MentionBatch:
    """B mentions, and tables of their E distinct candidates, sorted by length with the longest first.

    tokens         [B, L] padded at the end
    spans          [B, 2] first token of the mention, and the token after its last one
    labels         [B] position of the gold; -1 not scored, -2 not a candidate
    places         [B, K] row of each candidate in the tables, padded with -1
    priors         [B, K] log of the candidate's share of its alias
    masking        [B] probability of hiding a token of the mention in training
    members        [B, S] whether the mention is in each slice
    others         [B, N, K] rows of the candidates of the sentence's other mentions, or None
    entity_tokens  [E, L'] padded at the end; None if `vectors` replace them
    chunks         the parts of the tables that are encoded together
    titles         [E, 2] first token of the title, and the token after its last one
    entity_masking [E] probability of hiding a token of the title in training
    vectors        [E, H] precomputed vectors of entities, or None
    types          [E, T] numbers of types, padded with 0, or None
    relations      [E, R] numbers of relations, padded with 0, or None
    connected      [E, E] whether a relation connects two entities, or None
    real_tokens    number of tokens without padding
    learnt         number of labels that are the position of a gold
    """

    tokens: torch.Tensor
    spans: torch.Tensor
    labels: torch.Tensor
    places: torch.Tensor
    priors: torch.Tensor
    masking: torch.Tensor
    members: torch.Tensor
    titles: torch.Tensor
    entity_masking: torch.Tensor
    others: torch.Tensor | None = None
    entity_tokens: torch.Tensor | None = None
    vectors: torch.Tensor | None = None
    types: torch.Tensor | None = None
    relations: torch.Tensor | None = None
    connected: torch.Tensor | None = None
    chunks: tuple[Chunk, ...] = ()
    real_tokens: int = 0
    learnt: int = 0

    def take(self, rows: torch.Tensor) -> MentionBatch:
        """Return these rows with only the entities that they need, on the device of `rows`.

        With torch's DataParallel, each GPU computes different rows of a batch.
        """
        if len(rows) == len(self.tokens) and rows.device == self.tokens.device:
            return self
        tensors = {
            each.name: value.to(rows.device)
            for each in fields(self)
            if isinstance(value := getattr(self, each.name), torch.Tensor)
        }
        picked = {name: tensors[name][rows] for name in _BY_MENTION if name in tensors}
        wanted = [picked["places"], *([picked["others"]] if "others" in picked else [])]
        used = torch.unique(torch.cat([each.flatten() for each in wanted]))
        used = used[used >= 0]
        row_of = torch.full((len(tensors["titles"]) + 1,), layout.NO_ENTITY, device=rows.device)
        row_of[used] = torch.arange(len(used), device=rows.device)
        # The index -1 is the last row, which is NO_ENTITY.
        picked |= {name: row_of[picked[name]] for name in ("places", "others") if name in picked}
        picked |= {name: tensors[name][used] for name in _BY_ENTITY if name in tensors}
        if "connected" in tensors:
            picked["connected"] = tensors["connected"][used][:, used]
        length = self.chunks[0][2] if self.chunks else 0
        return replace(self, **cast(dict[str, Any], picked), chunks=((0, len(used), length),))


_BY_MENTION = ("tokens", "spans", "labels", "places", "priors", "masking", "members", "others")
_BY_ENTITY = ("entity_tokens", "titles", "entity_masking", "vectors", "types", "relations")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchMaker:
    """Makes batches with the parts that a model needs.

    model    the section of the model
    known    the properties of its training data
    vectors  [entities, H] precomputed vectors of all entities, or None
    """

    model: Any
    known: Known
    vectors: Array | None

    def make(self, samples: MentionSamples, indices: Array, device: torch.device) -> MentionBatch:
        """The batch of these samples of a split."""
        tables, indices = samples.tables, np.asarray(indices, dtype=np.int64)
        candidates = samples.candidates(indices)
        arrays: dict[str, Array] = {}
        wanted = [candidates]
        most_others = self.model.max_mentions - 1 if isinstance(self.model, CoMention) else 0
        if most_others:
            others = samples.others(indices, most_others)
            arrays["others"] = np.where(
                (others >= 0)[:, :, None],
                samples.candidates(np.maximum(others, 0).ravel()).reshape(*others.shape, -1),
                layout.NO_ENTITY,
            )
            wanted.append(arrays["others"])
        distinct, chunks = self._distinct(tables, wanted)
        arrays |= self._entities(tables, distinct)
        order = np.argsort(distinct)
        arrays |= {
            "tokens": samples.tokens.gather(samples.ids[indices], self.known.pad_id),
            "spans": samples.spans[indices],
            "labels": samples.labels[indices],
            "places": _rows(candidates, distinct, order),
            "priors": tables.priors[samples.aliases[indices]],
            "masking": samples.masking[indices],
            "members": samples.members[indices],
        }
        if most_others:
            arrays["others"] = _rows(arrays["others"], distinct, order)
        tokens = int(samples.lengths[indices].sum())
        learnt = int((arrays["labels"] >= 0).sum())
        return MentionBatch(**_on(arrays, device), chunks=chunks, real_tokens=tokens, learnt=learnt)

    def _distinct(self, tables: Tables, wanted: Sequence[Array]) -> tuple[Array, tuple[Chunk, ...]]:
        """The distinct entities of a batch, the longest first, and their chunks."""
        found = np.unique(np.concatenate([each.ravel() for each in wanted]))
        found = found[found >= 0]
        lengths = tables.tokens.lengths(found)
        order = np.argsort(-lengths, kind="stable")
        return found[order], chunks_of(lengths[order])

    def _entities(self, tables: Tables, distinct: Array) -> dict[str, Array]:
        is_co_mention = isinstance(self.model, CoMention)
        titles = tables.title_lengths[distinct].astype(np.int64)
        first = np.full_like(titles, self.known.specials_before)
        arrays: dict[str, Array] = {
            "titles": np.stack([first, first + titles], axis=1),
            "entity_masking": tables.masking[distinct],
        }
        if self.vectors is not None:
            arrays["vectors"] = np.asarray(self.vectors[distinct], dtype=np.float32)
        elif not is_co_mention:
            arrays["entity_tokens"] = tables.tokens.gather(distinct, self.known.pad_id)
        if is_co_mention:
            arrays["types"] = tables.types.gather(distinct, 0)
            arrays["relations"] = tables.relations.gather(distinct, 0)
            arrays["connected"] = tables.connected(distinct)
        return arrays


def candidate_scores(model: nn.Module, batch: MentionBatch) -> torch.Tensor:
    """Scores of a batch, [B, K]. Rows are the first argument, because torch's DataParallel splits that."""
    rows = torch.arange(len(batch.tokens), device=batch.tokens.device)
    scores: torch.Tensor = model(rows, batch)
    return scores.float()


def chunks_of(lengths: Array) -> tuple[Chunk, ...]:
    """Cut entities, the longest first, into chunks of limited size with little padding."""
    chunks: list[Chunk] = []
    first = 0
    for place, length in enumerate(lengths.tolist()):
        longest = int(lengths[first])
        is_full = (place - first + 1) * longest > _CHUNK_TOKENS
        if place > first and (is_full or (place - first >= _SMALL and 2 * length <= longest)):
            chunks.append((first, place, longest))
            first = place
    return (*chunks, (first, len(lengths), int(lengths[first]))) if len(lengths) else ()


def _rows(entities: Array, distinct: Array, order: Array) -> Array:
    """The rows of entities in a batch's tables; `order` sorts `distinct`; -1 stays -1."""
    places = np.searchsorted(distinct, np.maximum(entities, distinct[order[0]]), sorter=order)
    return np.where(entities >= 0, order[places], layout.NO_ENTITY)


def _on(arrays: Mapping[str, Array], device: torch.device) -> dict[str, torch.Tensor]:
    # Copied, because torch warns of read-only arrays, such as those mapped from a file.
    return {
        name: torch.from_numpy(np.array(value)).to(device, non_blocking=True)
        for name, value in arrays.items()
    }
