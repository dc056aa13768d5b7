"""Search that keeps one sequence: the most probable token at each step, or a drawn one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from toolkit.decoding.language_model import Found, LanguageModel, Limits

#: Picks a token [n] of log-probabilities [n, V] for the sequences [n].
Choice = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def greedy(model: LanguageModel, limits: Limits) -> list[Found]:
    """Write the most probable token at each step; of equal ones the first."""
    return _write(model, limits, lambda log_probabilities, _: log_probabilities.argmax(1))


def sample(model: LanguageModel, limits: Limits, *, top_k: int, seeds: Sequence[int]) -> list[Found]:
    """Draw each token among the top_k most probable ones, in proportion to their probabilities.

    seeds  of each sequence: what else is in the batch changes nothing
    """
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]

    def draw(log_probabilities: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        values, tokens = log_probabilities.topk(min(top_k, log_probabilities.shape[1]), dim=1)
        shares = values.double().softmax(1).cumsum(1)
        numbers = [torch.rand((), dtype=torch.float64, generator=generators[row]) for row in rows.tolist()]
        drawn = torch.stack(numbers).to(shares.device)[:, None]
        # The last share may fall short of one by rounding.
        places = (shares < drawn).sum(1, keepdim=True).clamp(max=shares.shape[1] - 1)
        return tokens.gather(1, places).squeeze(1)

    return _write(model, limits, draw)


def _write(model: LanguageModel, limits: Limits, choose: Choice) -> list[Found]:
    """Write all sequences side by side; those that have ended, or are too long, leave the batch."""
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
        tokens = choose(log_probabilities, rows)
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
