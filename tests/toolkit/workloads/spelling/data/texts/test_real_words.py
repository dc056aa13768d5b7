"""Which words are real: one rule for benchmarks and for what runs measure of themselves."""

from __future__ import annotations

import re
import string

import hypothesis.strategies as st
import pytest
from hypothesis import given

from toolkit.workloads.spelling.data.texts.real_words import RealWords


def real(line: str, dictionary: set[str]) -> list[bool]:
    return RealWords(dictionary).of(line.split()).tolist()


def test_a_real_word_has_only_words_of_the_dictionary_and_punctuation() -> None:
    line = 'the (cat!) zat Rome don\'t "dont" ... cat-cat _'
    expected = [True, True, False, True, True, False, True, False, True]
    assert real(line, {"the", "cat", "Rome", "don't"}) == expected


def test_case_counts_for_a_real_word() -> None:
    assert real("The the rome Rome ROME", {"the", "Rome"}) == [False, True, False, True, False]


def test_numbers_are_real_words_where_the_dictionary_has_them() -> None:
    assert real("4 5 1990s 4, 4th", {"4"}) == [True, False, False, True, False]


@pytest.mark.parametrize("sign", ["–", "“", "”", "’", "…", "«", "»", "·", "€"])
def test_punctuation_beyond_ascii_is_no_real_word(sign: str) -> None:
    assert real(f"{sign} cat{sign} {sign}cat cat", {"cat"}) == [False, False, False, True]


@given(st.text("abA1.,–’' ", max_size=20), st.sets(st.sampled_from(["a", "A", "ab", "b", "a'b", "–", "1"])))
def test_a_word_is_real_by_the_published_rule(line: str, dictionary: set[str]) -> None:
    pieces = [re.findall(r"\w\S+\w|\w+|[^\w\s]+", word) for word in line.split()]
    published = [
        all(piece in dictionary or set(piece) <= set(string.punctuation) for piece in each) for each in pieces
    ]
    assert real(line, dictionary) == published
