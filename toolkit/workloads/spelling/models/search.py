"""Decoding: the best token sequences that a search finds with a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from toolkit.nlp.decoding.beam import beam
from toolkit.nlp.decoding.best_first import best_first
from toolkit.nlp.decoding.greedy import greedy
from toolkit.nlp.decoding.language_model import LanguageModel, Limits
from toolkit.workloads.spelling.models.batches import Batch

#: Tokens without begin and end; None where the end was not reached within the limit.
Written: TypeAlias = "tuple[int, ...] | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The search for sequences.

    kind   greedy: the best token at each step; beam: the best of `width` sequences side by side;
           best_first: always extend the most probable sequence so far, by its `width` best tokens, at most as
           often as a beam would
    """

    kind: str = "greedy"
    width: int = 5

    def write(self, model: LanguageModel, limits: Limits) -> list[Written]:
        """The best sequence of each input."""
        if self.kind == "beam":
            found = [each[0] for each in beam(model, limits, width=self.width)]
        elif self.kind == "best_first":
            found = best_first(model, limits, budget=self.width * limits.length, branches=self.width)
        else:
            found = greedy(model, limits)
        return [each.tokens if each.complete else None for each in found]


@torch.no_grad()
def write_words(model: Any, batch: Batch, search: Search, limits: Limits) -> list[list[Written]]:
    """One sequence for each word of each text. The model is in evaluation mode."""
    words, texts = model.reading(batch)
    return by_text(search.write(words, limits), texts, len(batch.tokens))


def by_text(written: Sequence[Written], texts: torch.Tensor, count: int) -> list[list[Written]]:
    """Group the words of a batch, [words] with the text of each, by its `count` texts."""
    found: list[list[Written]] = [[] for _ in range(count)]
    for text, each in zip(texts.tolist(), written, strict=True):
        found[text].append(each)
    return found
