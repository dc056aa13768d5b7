"""Long texts are cut into fragments, at the ends of sentences and words where possible."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.nlp.tokens import token_spans
from toolkit.workloads.text_classification.data.folding import fold

TEXTS = st.text(st.sampled_from("ab .!?\n\"'。"), min_size=1, max_size=80).filter(str.strip)
ROOMS = st.integers(1, 12)


def fragments(text: str, room: int, unit: str, kind: str = "words") -> list[str]:
    """The texts of the fragments."""
    starts, ends = token_spans(text, kind, lowercase=False)
    cuts = fold(text, ends, room, unit)
    return [text[starts[a] : ends[b - 1]] for a, b in pairwise(cuts)]


@given(
    TEXTS, ROOMS, st.sampled_from(["wordpiece", "word", "sentence"]), st.sampled_from(["words", "whitespace"])
)
def test_fragments_are_consecutive_and_neither_empty_nor_too_long(
    text: str, room: int, unit: str, kind: str
) -> None:
    _, ends = token_spans(text, kind, lowercase=False)
    cuts = fold(text, ends, room, unit)
    assert (cuts[0], cuts[-1]) == (0, len(ends))
    assert all(0 < b - a <= room for a, b in pairwise(cuts))


@given(TEXTS, ROOMS)
def test_wordpieces_fill_every_fragment_but_the_last(text: str, room: int) -> None:
    _, ends = token_spans(text, "words", lowercase=False)
    sizes = np.diff(fold(text, ends, room, "wordpiece"))
    assert (sizes[:-1] == room).all()


@given(TEXTS, ROOMS)
def test_a_word_is_whole_unless_it_is_longer_than_a_fragment(text: str, room: int) -> None:
    """A cut within a word is at the end of a full fragment that has only tokens of this word."""
    starts, ends = token_spans(text, "words", lowercase=False)
    cuts = fold(text, ends, room, "word")
    for first, cut in pairwise(cuts[:-1]):
        if not any(letter.isspace() for letter in text[ends[cut - 1] : starts[cut]]):
            assert cut - first == room
            assert not re.search(r"\s", text[starts[first] : ends[cut - 1]])


@given(TEXTS, ROOMS)
def test_a_fragment_takes_as_many_words_as_fit(text: str, room: int) -> None:
    starts, ends = token_spans(text, "words", lowercase=False)
    cuts = fold(text, ends, room, "word")
    for first, cut in pairwise(cuts[:-1]):
        following = re.match(r"\S+", text[starts[cut] :])
        assert following is not None
        stop = int(np.searchsorted(ends, starts[cut] + following.end(), side="right"))
        assert stop - first > room


@pytest.mark.parametrize(
    "text, room, unit, expected",
    [
        # A cut between tokens would separate "aloud" from its marks.
        ('he read "aloud", then left', 5, "wordpiece", ['he read "aloud"', ", then left"]),
        ('he read "aloud", then left', 5, "word", ["he read", '"aloud", then', "left"]),
        ("so a-b-c-d-e-f it is", 4, "word", ["so", "a-b-", "c-d-", "e-f it", "is"]),
        ("A b. C d. E f g h.", 6, "sentence", ["A b. C d.", "E f g h."]),
        ("Yes. a b (c-d) e f. No.", 5, "sentence", ["Yes.", "a b", "(c-d)", "e f. No."]),
    ],
)
def test_a_unit_longer_than_a_fragment_is_cut_at_the_next_smaller_unit(
    text: str, room: int, unit: str, expected: list[str]
) -> None:
    assert fragments(text, room, unit) == expected


@pytest.mark.parametrize(
    "text, sentences",
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ('He said "no." Then left.', ['He said "no."', "Then left."]),
        ("Wait… what (really?) now", ["Wait…", "what (really?)", "now"]),
        ("It costs 3.50 a b. Yes", ["It costs 3.50 a b.", "Yes"]),
        ("これは本。そうです。はい", ["これは本。", "そうです。", "はい"]),
        ("Dear all\n\nthis is", ["Dear all", "this is"]),
        ("one line\nand the next", ["one line\nand the next"]),
        ("...", ["..."]),
    ],
)
def test_sentences_end_as_documented(text: str, sentences: list[str]) -> None:
    """In fragments with room for the longest sentence alone."""
    room = max(len(token_spans(each, "words", lowercase=False)[0]) for each in sentences)
    assert fragments(text, room, "sentence") == sentences


def test_a_token_that_begins_with_a_blank_belongs_to_the_word_after_the_blank() -> None:
    """Byte-level tokenizers have such tokens: " c" begins at the blank."""
    assert fold("ab c de", np.array([1, 2, 4, 6, 7]), 3, "word") == [0, 3, 5]
