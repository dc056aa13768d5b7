"""Words in one sequence: no word attends to another word."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.toolkit.workloads.spelling.models.making import CASES, TEXTS, WRITES_WORDS
from toolkit.workloads.spelling.models.batches import NONE
from toolkit.workloads.spelling.models.generation.word_blocks import (
    block_causal,
    block_cross,
    block_positions,
    blocks_of,
    first_places,
)

#: The words of input tokens: a special token, words of two and three tokens, a special token, padding.
READ = torch.tensor([[NONE, 0, 0, 1, 1, 1, NONE, NONE]])
#: The words of output tokens.
WRITTEN = torch.tensor([[0, 0, 0, 1, 1, NONE]])


def test_output_token_attends_to_the_earlier_tokens_of_its_word() -> None:
    mask = block_causal(WRITTEN)[0].int().tolist()
    assert mask == [
        [1, 0, 0, 0, 0, 0],
        [1, 1, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0],
        [0, 0, 0, 1, 0, 0],
        [0, 0, 0, 1, 1, 0],
        [0, 0, 0, 0, 0, 1],
    ]


def test_output_token_attends_to_the_input_of_its_word() -> None:
    mask = block_cross(WRITTEN, READ)[0].int().tolist()
    assert mask[:3] == [[0, 1, 1, 0, 0, 0, 0, 0]] * 3
    assert mask[3:5] == [[0, 0, 0, 1, 1, 1, 0, 0]] * 2
    assert mask[5] == [0] * 8


def test_positions_of_a_word_count_from_its_first_input_token() -> None:
    assert block_positions(WRITTEN, READ).tolist() == [[1, 2, 3, 3, 4, 0]]


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
    make, batch_of, scores, _ = CASES[name]
    model, batch = make().eval(), batch_of(TEXTS)
    changed = batch.targets.clone()
    own = batch.target_words == 1
    changed[own] = 29
    before, after = scores(model, batch), scores(model, replace(batch, targets=changed))
    moved = (before - after).abs().amax(-1) > 1e-6
    assert bool(moved[own].any())
    assert not bool(moved[~own].any())
