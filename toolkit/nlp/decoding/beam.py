"""Beam search: extends the best few sequences of each input together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from toolkit.nlp.decoding.language_model import Found, LanguageModel, Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class _Live:
    """Unfinished sequences, grouped by input, the best first.

    inputs  [n] input of each sequence
    slots   [n] rank of each among the sequences of its input
    tokens  [n] last token of each
    scores  [n] log-probability of each so far
    paths   tokens of each so far
    """

    inputs: torch.Tensor
    slots: torch.Tensor
    tokens: torch.Tensor
    scores: torch.Tensor
    paths: list[tuple[int, ...]]


def beam(model: LanguageModel, limits: Limits, *, width: int = 5) -> list[list[Found]]:
    """The best sequences of each input, at most `width`, the best first.

    Sequences that have ended keep their place in the beam. They are ranked by log-probability over
    tokens written (Wu et al. 2016, section 7, with alpha 1, without its constants); while they grow, those of
    an input are equally long, so that their log-probabilities decide. Width 1 is greedy search.
    """
    ended: list[list[Found]] = [[] for _ in range(len(model))]
    if len(model) == 0:
        return ended
    count = len(model)
    prefixes = model.begin()
    live = _Live(
        inputs=torch.arange(count), slots=torch.zeros(count, dtype=torch.long),
        tokens=torch.full((count,), limits.begin), scores=torch.zeros(count), paths=[()] * count,
    )  # fmt: skip
    for done in range(1, limits.length + 1):
        log_probabilities, prefixes = prefixes.advance(live.tokens)
        rooms = torch.tensor([width - len(each) for each in ended])
        parents, live = _extend(live, log_probabilities, rooms, width)
        going = _collect_ended(live, limits, done, ended)
        live = _select(live, going)
        if not len(going):
            break
        prefixes = prefixes.take(parents[going])
    return [ranked(each) for each in ended]


def ranked(found: Iterable[Found]) -> list[Found]:
    """The sequences by log-probability over tokens written, the best first."""
    return sorted(found, key=lambda each: -each.log_probability / max(each.written, 1))


def _extend(
    live: _Live, log_probabilities: torch.Tensor, rooms: torch.Tensor, width: int
) -> tuple[torch.Tensor, _Live]:
    """The best continuations of each input, as many as it has room for, and the rows that they extend."""
    count, choices = len(rooms), min(width, log_probabilities.shape[1])
    values, tokens = (each.cpu() for each in log_probabilities.topk(choices, dim=1))
    cell = live.inputs * width + live.slots
    grid = torch.full((count * width, choices), -torch.inf)
    grid[cell] = values.float() + live.scores[:, None]
    row_of = torch.zeros(count * width, dtype=torch.long)
    row_of[cell] = torch.arange(len(cell))
    best, places = grid.view(count, -1).topk(min(width, width * choices), dim=1)
    rank = torch.arange(best.shape[1]).expand_as(best)
    inputs, slots = ((rank < rooms[:, None]) & (best > -torch.inf)).nonzero(as_tuple=True)
    chosen = places[inputs, slots]
    parents = row_of[inputs * width + chosen // choices]
    picked = tokens[parents, chosen % choices]
    paths = [
        (*live.paths[parent], token) for parent, token in zip(parents.tolist(), picked.tolist(), strict=True)
    ]
    return parents, _Live(inputs=inputs, slots=slots, tokens=picked, scores=best[inputs, slots], paths=paths)


def _collect_ended(live: _Live, limits: Limits, done: int, ended: list[list[Found]]) -> torch.Tensor:
    """Add the sequences that have ended, or have reached their limit of tokens, to `ended`, by input.

    Returns the rows of the others.
    """
    going = []
    for row, (place, token) in enumerate(zip(live.inputs.tolist(), live.tokens.tolist(), strict=True)):
        complete = token == limits.end
        if not complete and done < limits.of(place):
            going.append(row)
            continue
        path = live.paths[row][:-1] if complete else live.paths[row]
        found = Found(tokens=path, log_probability=float(live.scores[row]), complete=complete)
        ended[place].append(found)
    return torch.tensor(going, dtype=torch.long)


def _select(live: _Live, rows: torch.Tensor) -> _Live:
    """The sequences of these rows, with new ranks."""
    inputs = live.inputs[rows]
    _, sizes = torch.unique_consecutive(inputs, return_counts=True)
    slots = torch.arange(len(inputs)) - torch.repeat_interleave(sizes.cumsum(0) - sizes, sizes)
    return _Live(
        inputs=inputs, slots=slots, tokens=live.tokens[rows], scores=live.scores[rows],
        paths=[live.paths[row] for row in rows.tolist()],
    )  # fmt: skip
