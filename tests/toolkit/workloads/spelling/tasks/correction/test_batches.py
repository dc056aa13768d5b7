"""Inputs and targets of decoders, and the texts of what they write."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from toolkit.task import lists_of
from toolkit.workloads.spelling.models.batches import NONE
from toolkit.workloads.spelling.tasks.correction.batches import (
    ids_of,
    text_of,
    text_of_words,
    text_targets,
    units_of,
    word_targets,
)
from toolkit.workloads.spelling.tokenizers.make_tokenizer import characters
from toolkit.workloads.spelling.tokenizers.tokenizer import TextTokenizer

PADDING, BEGIN, END = 0, 2, 3
SIGNS: Any = SimpleNamespace(padding=PADDING, begin=BEGIN, end=END)

units = st.lists(st.none() | st.lists(st.integers(END + 1, 50_000), max_size=5).map(tuple), max_size=6)


@given(st.lists(units, min_size=1, max_size=4))
def test_units_are_separated_by_the_end_token_and_unended_units_are_empty(written):
    found = lists_of(ids_of(written, END))
    assert found.values.dtype == np.int64
    assert [units_of(ids, END) for ids in found] == [[unit or () for unit in each] for each in written]


def test_a_word_stays_if_a_part_of_it_is_unknown():
    tokenizer = TextTokenizer(characters())
    written = [tuple(tokenizer.encode(word)) for word in ("the", "café")]
    assert text_of_words(written, ["teh", "café"], tokenizer) == "the café"


def decodes_to(text: str) -> Any:
    """Return a tokenizer that decodes any tokens to this text."""
    return SimpleNamespace(unknown=1, decode=lambda numbers: text)


#: All characters that str.split takes for white space.
spaces = st.sampled_from([chr(code) for code in range(0x3001) if chr(code).isspace()])
blank = st.lists(spaces, max_size=3).map("".join)


@given(blank)
def test_a_word_or_a_text_stays_if_nothing_was_written(written):
    assert text_of_words([(5,), (5,)], ["teh", "rivver"], decodes_to(written)) == "teh rivver"
    assert text_of((5,), "teh  cat", decodes_to(written)) == "teh cat"


@given(st.lists(st.text("ab,", min_size=1, max_size=4), min_size=1, max_size=4), blank, spaces)
def test_white_space_in_and_around_a_word_is_left_out(parts, around, between):
    made = text_of_words([(5,), None], ["teh", "b"], decodes_to(around + between.join(parts) + around))
    assert made == f"{''.join(parts)} b"


def test_a_decoder_of_texts_reads_each_token_and_predicts_the_next():
    outputs = np.array([[5, 6, 7], [8, NONE, NONE], [NONE, NONE, NONE]])
    targets, labels = text_targets(outputs, np.array([3, 1, 0]), SIGNS)
    assert targets.tolist() == [[2, 5, 6, 7], [2, 8, 0, 0], [2, 0, 0, 0]]
    assert labels.tolist() == [[5, 6, 7, 3], [8, 3, NONE, NONE], [3, NONE, NONE, NONE]]


texts_of_words = st.lists(
    st.lists(st.lists(st.integers(4, 30), min_size=1, max_size=3), max_size=4), min_size=1, max_size=3
)


@given(texts_of_words)
def test_a_decoder_of_words_reads_and_predicts_each_word_separately(words):
    tokens = [[token for word in text for token in word] for text in words]
    places = [[number for number, word in enumerate(text) for _ in word] for text in words]
    found = word_targets(_rows(tokens), _rows(places), SIGNS)
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
