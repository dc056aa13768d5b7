"""What decoders are given and asked for, and what is made of what they write."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.toolkit.spelling_files import texts
from toolkit.models.spelling.batches import NONE
from toolkit.spelling_samples.layout import NOBODY
from toolkit.tasks.correction_batches import (
    pack,
    text_batch,
    text_of,
    text_targets,
    unpack,
    word_batch,
    word_targets,
)
from toolkit.tokenization.making import train_bpe
from toolkit.tokenization.tokenizer import TextTokenizer

CPU = torch.device("cpu")
PADDING, BEGIN, END = 0, 2, 3

units = st.lists(st.none() | st.lists(st.integers(0, 50_000), max_size=5).map(tuple), max_size=6)


@given(st.lists(units, min_size=1, max_size=4))
def test_what_was_written_survives_as_a_row_of_numbers(written):
    rows = pack(written, 40)
    assert rows.shape == (len(written), 40)
    assert [unpack(row) for row in rows] == written


@given(units)
def test_a_unit_without_room_is_as_one_without_an_end(written):
    found = unpack(pack([written], len(written) + 4)[0])
    assert len(found) == len(written)
    assert all(kept is None or kept == unit for kept, unit in zip(found, written, strict=True))
    assert sum(len(kept) for kept in found if kept is not None) <= 4


def test_the_next_unit_has_the_room_that_one_did_not_take():
    assert unpack(pack([[(1, 2, 3), (4,), (5, 6)]], 6)[0]) == [(1, 2, 3), None, None]
    assert unpack(pack([[(1, 2, 3), (4, 5), (6,)]], 5)[0]) == [None, (4, 5), None]


@pytest.fixture(scope="module")
def tokenizer() -> TextTokenizer:
    return TextTokenizer(train_bpe(texts(200), 300))


def test_a_text_is_made_of_its_words_and_of_those_that_have_no_end_as_they_were(tokenizer):
    written = [tuple(tokenizer.encode(word).tolist()) for word in ("the", "river")]
    assert text_of([written[0], None, written[1]], ["teh", "stoen", "rivver"], tokenizer) == "the stoen river"
    assert text_of([written[0], (), written[1]], ["a", "b", "c"], tokenizer) == "the river"
    assert text_of([None], ["as it was"], tokenizer) == "as it was"


def test_a_decoder_of_texts_is_given_one_token_and_asked_for_the_next():
    outputs = np.array([[5, 6, 7], [8, NONE, NONE], [NONE, NONE, NONE]])
    targets, labels = text_targets(outputs, np.array([3, 1, 0]), PADDING, BEGIN, END)
    assert targets.tolist() == [[2, 5, 6, 7], [2, 8, 0, 0], [2, 0, 0, 0]]
    assert labels.tolist() == [[5, 6, 7, 3], [8, 3, NONE, NONE], [3, NONE, NONE, NONE]]


texts_of_words = st.lists(
    st.lists(st.lists(st.integers(4, 30), min_size=1, max_size=3), max_size=4), min_size=1, max_size=3
)


@given(texts_of_words)
def test_a_decoder_of_words_is_given_each_of_them_by_itself(words):
    tokens = [[token for word in text for token in word] for text in words]
    places = [[number for number, word in enumerate(text) for _ in word] for text in words]
    found = word_targets(_rows(tokens), _rows(places), PADDING, BEGIN, END)
    targets, numbers, labels = (each.tolist() for each in found)
    for row, text in enumerate(words):
        read = [(number, token) for number, word in enumerate(text) for token in (BEGIN, *word)]
        wanted = [token for word in text for token in (*word, END)]
        rest = len(targets[row]) - len(read)
        assert targets[row] == [token for _, token in read] + [PADDING] * rest
        assert numbers[row] == [number for number, _ in read] + [NONE] * rest
        assert labels[row] == wanted + [NONE] * rest


def _rows(lists: list[list[int]]) -> np.ndarray:
    width = max(1, *map(len, lists))
    return np.array([[*each, *[NONE] * (width - len(each))] for each in lists])


def test_texts_become_batches_without_targets():
    tokens = np.array([[2, 7, 8, 9, 3], [2, 7, 3, 0, 0]])
    pieces = np.array([[NOBODY, 0, 1, 2, NOBODY], [NOBODY, 0, NOBODY, NOBODY, NOBODY]])
    words = np.array([[0, 0, 1], [0, NONE, NONE]])
    whole, split = (
        text_batch(tokens, np.array([5, 3]), CPU),
        word_batch(tokens, np.array([5, 3]), pieces, words, CPU),
    )
    assert (whole.real_tokens, whole.targets, split.targets, split.labels) == (8, None, None, None)
    assert split.words.tolist() == [[-1, 0, 0, 1, -1], [-1, 0, -1, -1, -1]]
    assert torch.equal(whole.tokens, split.tokens)
