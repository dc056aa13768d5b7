"""Best-first search: always extends the sequence with the highest score so far."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from toolkit.nlp.decoding.beam import ranked
from toolkit.nlp.decoding.language_model import Found, LanguageModel, Limits


@dataclass(order=True, frozen=True, slots=True)
class _Hypothesis:
    """Ordered by cost, the lowest first; then the longest first, then by tokens: a total order."""

    cost: float
    shortness: int
    tokens: tuple[int, ...]
    complete: bool = field(compare=False)

    def found(self) -> Found:
        return Found(tokens=self.tokens, log_probability=-self.cost, complete=self.complete)


def best_first(
    model: LanguageModel, limits: Limits, *, budget: int, branches: int | None = None
) -> list[Found]:
    """The most probable sequence of each input.

    budget    most sequences of an input that are extended; after these, the answer is the best complete
              sequence or, without any, the best one by log-probability per token
    branches  number of most probable tokens that extend a sequence; None: all

    Because no step raises a probability, the first complete sequence (or one of the longest length) at the
    front is the best one, if all branches were kept.
    """
    searches = [_Search(end=limits.end, length=limits.of(row)) for row in range(len(model))]
    for _ in range(budget):
        going = [
            (row, each)
            for row, search in enumerate(searches)
            if search.answer is None and (each := search.pop()) is not None
        ]
        if not going:
            break
        log_probabilities = _after(model, going, limits.begin)
        values, tokens = log_probabilities.topk(
            min(branches or log_probabilities.shape[1], log_probabilities.shape[1]), dim=1
        )
        for (row, each), some, numbers in zip(going, values.tolist(), tokens.tolist(), strict=True):
            searches[row].grow(each, numbers, some)
    return [search.best() for search in searches]


class _Search:
    """The open sequences of one input."""

    def __init__(self, *, end: int, length: int) -> None:
        self._end, self._length = end, length
        self._open = [_Hypothesis(0.0, 0, (), False)]
        self.answer: Found | None = None

    def pop(self) -> _Hypothesis | None:
        """Return the best open sequence; if it is final, set it as the answer and return None."""
        best = heapq.heappop(self._open)
        if best.complete or len(best.tokens) >= self._length:
            self.answer = best.found()
            return None
        return best

    def grow(self, parent: _Hypothesis, tokens: Sequence[int], log_probabilities: Sequence[float]) -> None:
        """Add the continuations of a sequence."""
        for token, value in zip(tokens, log_probabilities, strict=True):
            if value == -math.inf:
                continue
            complete = token == self._end
            path = parent.tokens if complete else (*parent.tokens, token)
            found = _Hypothesis(parent.cost - value, -len(path) - complete, path, complete)
            heapq.heappush(self._open, found)

    def best(self) -> Found:
        """Return the answer; without one, the best sequence so far."""
        if self.answer is not None:
            return self.answer
        complete = [each for each in self._open if each.complete]
        if complete:
            return min(complete).found()
        return ranked(each.found() for each in self._open)[0]


def _after(model: LanguageModel, going: Sequence[tuple[int, _Hypothesis]], begin: int) -> torch.Tensor:
    """Log-probabilities of the token after each of these sequences, [n, V]."""
    paths = [(begin, *each.tokens) for _, each in going]
    lengths = torch.tensor([len(path) for path in paths])
    prefixes = torch.full((len(paths), int(lengths.max())), begin)
    for place, path in enumerate(paths):
        prefixes[place, : len(path)] = torch.tensor(path)
    return model.after(torch.tensor([row for row, _ in going]), prefixes, lengths)
