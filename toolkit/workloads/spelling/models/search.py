"""Decoding: search for the best sequences of tokens with a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from toolkit.nlp.decoding.beam import beam
from toolkit.nlp.decoding.best_first import best_first
from toolkit.nlp.decoding.greedy import greedy
from toolkit.nlp.decoding.language_model import LanguageModel, Limits
from toolkit.workloads.spelling.models.batches import Batch

#: Tokens without begin and end token; None if there was no end token within the limit.
Written: TypeAlias = "tuple[int, ...] | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A method to search for sequences.

    kind   greedy: take the best token at each step; beam: keep the `width` best sequences at each step;
           best_first: always extend the most probable sequence so far by its `width` best tokens, with at
           most as many extensions as a beam
    """

    kind: str = "greedy"
    width: int = 5

    def write(self, model: LanguageModel, limits: Limits) -> list[Written]:
        if self.kind == "beam":
            # An incomplete sequence may score higher than the complete ones.
            found = [
                next((one for one in each if one.complete), each[0])
                for each in beam(model, limits, width=self.width)
            ]
        elif self.kind == "best_first":
            found = best_first(model, limits, budget=self.width * limits.length, branches=self.width)
        else:
            found = greedy(model, limits)
        return [each.tokens if each.complete else None for each in found]


@torch.no_grad()
def write_words(model: Any, batch: Batch, search: Search, limits: Limits) -> list[list[Written]]:
    """Return the sequence of each word of each text. The model must be in evaluation mode."""
    words, texts = model.reading(batch)
    written = search.write(words, limits)
    found: list[list[Written]] = [[] for _ in range(len(batch.tokens))]
    for text, each in zip(texts.tolist(), written, strict=True):
        found[text].append(each)
    return found
