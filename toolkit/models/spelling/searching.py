"""What models write when they are left to themselves: the best sequences of a search, as tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

import torch

from toolkit.decoding.beam import beam
from toolkit.decoding.best_first import best_first
from toolkit.decoding.language_model import Found, LanguageModel, Limits
from toolkit.decoding.step_by_step import greedy
from toolkit.models.spelling.batches import Batch, CorrectionBatch
from toolkit.models.spelling.words_correction import WordsReading

#: Tokens without signs; None where the end was not reached within the limit.
Written: TypeAlias = "tuple[int, ...] | None"
B = TypeVar("B", bound=Batch, contravariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """How sequences are looked for.

    kind   greedy: the best token at each step; beam: the best of `width` sequences side by side;
           best_first: the most probable sequence so far is gone on with, by its `width` best tokens, and no
           more often than a beam would
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
        return [_written(each) for each in found]


class WritesTexts(Protocol):
    """A model that writes texts."""

    def reading(self, batch: CorrectionBatch) -> LanguageModel: ...


class WritesWords(Protocol[B]):
    """A model that writes words of its kind of batch."""

    def reading(self, batch: B) -> WordsReading: ...


@torch.no_grad()
def write_texts(
    model: WritesTexts, batch: CorrectionBatch, search: Search, limits: Limits
) -> list[list[Written]]:
    """One sequence for each text: [texts][1]. The model is in evaluation mode."""
    return [[each] for each in search.write(model.reading(batch), limits)]


@torch.no_grad()
def write_words(model: WritesWords[B], batch: B, search: Search, limits: Limits) -> list[list[Written]]:
    """One sequence for each word of each text. The model is in evaluation mode."""
    reading = model.reading(batch)
    return by_text(search.write(reading.model, limits), reading.texts, len(batch.tokens))


def by_text(written: Sequence[Written], texts: torch.Tensor, count: int) -> list[list[Written]]:
    """Sort the words of a batch, [words] with the text of each, to those of its `count` texts."""
    found: list[list[Written]] = [[] for _ in range(count)]
    for text, each in zip(texts.tolist(), written, strict=True):
        found[text].append(each)
    return found


def _written(found: Found) -> Written:
    return found.tokens if found.complete else None
