"""Decoders as language models: step by step, whole prefixes and training say the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.toolkit.workloads.spelling.models.making import (
    BEGIN,
    END,
    LONG,
    SHORT,
    TEXTS,
    correction_batch,
    nmt,
    plus,
    plus_batch,
    scored,
    words_batch,
    words_nmt,
)
from toolkit.nlp.decoding.beam import beam
from toolkit.nlp.decoding.best_first import best_first
from toolkit.nlp.decoding.greedy import greedy
from toolkit.nlp.decoding.language_model import Limits
from toolkit.workloads.spelling.models.generation.decoder import DecoderModel
from toolkit.workloads.spelling.models.losses import summed_cross_entropy

LIMITS = Limits(begin=BEGIN, end=END, length=8)

WORDS: dict[str, tuple[Callable[[], Any], Callable[..., Any], Callable[[Any, Any], torch.Tensor]]] = {
    "words_nmt": (words_nmt, words_batch, scored),
    "with the text": (lambda: words_nmt(use_sequence_context=True), words_batch, scored),
    "plus": (plus, plus_batch, lambda model, batch: scored(model, batch).written),
}


def numbers(texts: list[int]) -> list[int]:
    """Which word of its text each word is."""
    return [place - texts.index(text) for place, text in enumerate(texts)]


def step_by_step(model: DecoderModel, paths: list[list[int]]) -> list[torch.Tensor]:
    """Log-probabilities [V] after the last token of each path, one token at a time."""
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
    """The same of whole prefixes, in turned order."""
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
def test_writing_a_text_scores_as_training_does() -> None:
    model, batch = nmt().eval(), correction_batch(TEXTS)
    assert batch.targets is not None
    training = scored(model, batch).log_softmax(-1)
    lengths = [2, 7, 4]
    paths = [row[:length].tolist() for row, length in zip(batch.targets, lengths, strict=True)]
    wanted = [rows[length - 1] for rows, length in zip(training, lengths, strict=True)]
    compare(model.reading(batch), paths, wanted)


@pytest.mark.parametrize("name", list(WORDS))
@torch.no_grad()
def test_writing_words_by_themselves_scores_as_all_in_one_sequence(name: str) -> None:
    make, batch_of, scores = WORDS[name]
    model, batch = make().eval(), batch_of([LONG, SHORT])
    training = scores(model, batch).log_softmax(-1)
    words, texts = model.reading(batch)
    paths, wanted = [], []
    for text, number in zip(texts.tolist(), numbers(texts.tolist()), strict=True):
        own = batch.target_words[text] == number
        paths.append(batch.targets[text][own].tolist())
        wanted.append(training[text][own][-1])
    assert len(paths) == len(LONG) + len(SHORT)
    compare(words, paths, wanted)


def learnt(model: Any, batch: Any, labels: torch.Tensor, scores: Callable[[Any, Any], torch.Tensor]) -> Any:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(80):
        optimizer.zero_grad()
        summed_cross_entropy(scores(model, batch), labels).backward()
        optimizer.step()
    return model.eval()


def test_what_was_learnt_is_written_by_every_search() -> None:
    torch.manual_seed(0)
    batch = correction_batch([SHORT, LONG])
    assert batch.labels is not None
    model = learnt(nmt(), batch, batch.labels, scored)
    limits = Limits(begin=BEGIN, end=END, length=20)
    with torch.no_grad():
        reading = model.reading(batch)
        every = [
            greedy(reading, limits),
            [found[0] for found in beam(reading, limits)],
            best_first(reading, limits, budget=40),
        ]
    for found in every:
        for row, each in enumerate(found):
            gold = [token for token in batch.labels[row].tolist() if token >= 0]
            assert [*each.tokens, END] == gold
            assert each.complete


@pytest.mark.parametrize("name", list(WORDS))
def test_all_words_are_written_at_once(name: str) -> None:
    torch.manual_seed(0)
    make, batch_of, scores = WORDS[name]
    batch = batch_of(TEXTS)
    labels = getattr(batch, "target_labels", None)
    labels = batch.labels if labels is None else labels
    model = learnt(make(), batch, labels, scores)
    with torch.no_grad():
        words, texts = model.reading(batch)
        found = greedy(words, LIMITS)
    for text, number, each in zip(texts, numbers(texts.tolist()), found, strict=True):
        gold = labels[text][batch.target_words[text] == number].tolist()
        assert [*each.tokens, END] == gold
