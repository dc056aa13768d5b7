"""Which words are real: benchmarks and evaluations of runs use the same rule."""

from __future__ import annotations

import re
import string

import hypothesis.strategies as st
from hypothesis import given

from toolkit.workloads.spelling.data.texts.dictionary import RealWords


def real(line: str, dictionary: set[str]) -> list[bool]:
    return RealWords(dictionary).of(line.split()).tolist()


def test_a_real_word_consists_of_words_of_the_dictionary_and_punctuation() -> None:
    line = 'the (cat!) zat Rome don\'t "dont" ... cat-cat _'
    expected = [True, True, False, True, True, False, True, False, True]
    assert real(line, {"the", "cat", "Rome", "don't"}) == expected


@given(st.text("abA1.,–’' ", max_size=20), st.sets(st.sampled_from(["a", "A", "ab", "b", "a'b", "–", "1"])))
def test_real_words_follow_the_published_rule(line: str, dictionary: set[str]) -> None:
    pieces = [re.findall(r"\w\S+\w|\w+|[^\w\s]+", word) for word in line.split()]
    published = [
        all(piece in dictionary or set(piece) <= set(string.punctuation) for piece in each) for each in pieces
    ]
    assert real(line, dictionary) == published
