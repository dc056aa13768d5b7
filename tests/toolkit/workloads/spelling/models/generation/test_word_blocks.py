"""Words in one sequence: no word attends to another word."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.toolkit.workloads.spelling.models.making import CASES, TEXTS, WRITES_WORDS
from toolkit.workloads.spelling.models.batches import NONE
from toolkit.workloads.spelling.models.generation.word_blocks import blocks_of, first_places


def test_first_places_are_found_if_tokens_of_a_word_are_not_consecutive() -> None:
    """A space that is deleted within a word belongs to no word."""
    assert first_places(torch.tensor([[NONE, 0, NONE, 0, 1]]), 3).tolist() == [[1, 4, 0]]


def test_words_as_separate_rows_have_their_tokens() -> None:
    words = torch.tensor([[NONE, 0, NONE, 0, 1], [0, 1, 1, 1, NONE]])
    blocks = blocks_of(words)
    assert blocks.texts.tolist() == [0, 0, 1, 1]
    assert blocks.first.tolist() == [1, 4, 0, 1]
    assert blocks.lengths.tolist() == [2, 1, 1, 3]
    places = torch.arange(10.0).view(2, 5, 1)
    context = blocks.context(places)
    kept = context.states[context.mask.squeeze(1)].squeeze(1)
    assert kept.tolist() == [1, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("name", WRITES_WORDS)
def test_changed_output_of_a_word_does_not_change_scores_of_other_words(name: str) -> None:
    case = CASES[name]
    model, batch = case.make().eval(), case.batch_of(TEXTS)
    changed = batch.targets.clone()
    own = batch.target_words == 1
    changed[own] = 29
    before, after = case.scores(model, batch), case.scores(model, replace(batch, targets=changed))
    moved = (before - after).abs().amax(-1) > 1e-6
    assert bool(moved[own].any())
    assert not bool(moved[~own].any())
