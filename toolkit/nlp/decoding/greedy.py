"""Search that keeps one sequence: the most probable token at each step."""

from __future__ import annotations

import torch

from toolkit.nlp.decoding.language_model import Found, LanguageModel, Limits


def greedy(model: LanguageModel, limits: Limits) -> list[Found]:
    """Write the most probable token at each step; of equally probable ones, the first.

    All sequences are written together; those that have ended, or are too long, leave the batch.
    """
    count = len(model)
    written: list[list[int]] = [[] for _ in range(count)]
    total, complete = [0.0] * count, [False] * count
    if count == 0:
        return []
    prefixes = model.begin()
    tokens = torch.full((count,), limits.begin)
    rows = torch.arange(count)
    lengths = torch.tensor([limits.of(row) for row in range(count)])
    for done in range(1, limits.length + 1):
        log_probabilities, prefixes = prefixes.advance(tokens)
        tokens = log_probabilities.argmax(1)
        chosen = log_probabilities.gather(1, tokens[:, None]).squeeze(1)
        for row, token, value in zip(rows.tolist(), tokens.tolist(), chosen.tolist(), strict=True):
            total[row] += value
            complete[row] = token == limits.end
            if token != limits.end:
                written[row].append(token)
        has_room = (lengths[rows] > done).to(tokens.device)
        going = ((tokens != limits.end) & has_room).nonzero().squeeze(1)
        if len(going) == 0:
            break
        if len(going) < len(tokens):
            prefixes, tokens, rows = prefixes.take(going), tokens[going], rows[going.cpu()]
    return [
        Found(tokens=tuple(each), log_probability=value, complete=done)
        for each, value, done in zip(written, total, complete, strict=True)
    ]
