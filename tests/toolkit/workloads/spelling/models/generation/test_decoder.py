"""Decoders as language models: single steps, whole prefixes and training give the same scores."""

from __future__ import annotations

import pytest
import torch

from tests.toolkit.workloads.spelling.models.making import (
    CASES,
    LONG,
    SHORT,
    TEXTS,
    WRITES_WORDS,
    correction_batch,
    scored,
    small,
)
from toolkit.workloads.spelling.models.generation.decoder import DecoderModel


def numbers(texts: list[int]) -> list[int]:
    """Return the number of each word in its text, given the texts of the words."""
    return [place - texts.index(text) for place, text in enumerate(texts)]


def step_by_step(model: DecoderModel, paths: list[list[int]]) -> list[torch.Tensor]:
    """Return log-probabilities [V] after the last token of each path, one token at a time."""
    found: list[torch.Tensor] = [torch.empty(0)] * len(paths)
    prefixes, rows = model.begin(), list(range(len(paths)))
    for place in range(max(map(len, paths))):
        going = [at for at, row in enumerate(rows) if len(paths[row]) > place]
        prefixes, rows = prefixes.take(torch.tensor(going)), [rows[at] for at in going]
        scores, prefixes = prefixes.advance(torch.tensor([paths[row][place] for row in rows]))
        for row, each in zip(rows, scores, strict=True):
            found[row] = each
    return found


def whole(model: DecoderModel, paths: list[list[int]]) -> list[torch.Tensor]:
    """Return the same from whole prefixes, in reversed order."""
    rows = torch.arange(len(paths)).flip(0)
    lengths = torch.tensor([len(paths[row]) for row in rows])
    padded = torch.full((len(paths), int(lengths.max())), 7)
    for place, row in enumerate(rows.tolist()):
        padded[place, : len(paths[row])] = torch.tensor(paths[row])
    return list(model.after(rows, padded, lengths).flip(0))


def compare(model: DecoderModel, paths: list[list[int]], wanted: list[torch.Tensor]) -> None:
    for found in (step_by_step(model, paths), whole(model, paths)):
        torch.testing.assert_close(torch.stack(found), torch.stack(wanted), rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_generation_of_a_text_has_the_scores_of_training() -> None:
    model, batch = small("nmt").eval(), correction_batch(TEXTS)
    assert batch.targets is not None
    training = scored(model, batch).log_softmax(-1)
    lengths = [2, 7, 4]
    paths = [row[:length].tolist() for row, length in zip(batch.targets, lengths, strict=True)]
    wanted = [rows[length - 1] for rows, length in zip(training, lengths, strict=True)]
    compare(model.reading(batch), paths, wanted)


@pytest.mark.parametrize("name", WRITES_WORDS)
@torch.no_grad()
def test_generation_of_separate_words_has_the_scores_of_training(name: str) -> None:
    case = CASES[name]
    model, batch = case.make().eval(), case.batch_of([LONG, SHORT])
    training = case.scores(model, batch).log_softmax(-1)
    words, texts = model.reading(batch)
    paths, wanted = [], []
    for text, number in zip(texts.tolist(), numbers(texts.tolist()), strict=True):
        own = batch.target_words[text] == number
        paths.append(batch.targets[text][own].tolist())
        wanted.append(training[text][own][-1])
    assert len(paths) == len(LONG) + len(SHORT)
    compare(words, paths, wanted)
