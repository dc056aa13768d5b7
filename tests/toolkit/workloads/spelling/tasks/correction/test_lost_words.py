"""Words that a model leaves out of a text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.workloads.spelling.tasks.correction.lost_words import with_lost_words

words = st.text("abc", min_size=1, max_size=4)


@given(st.lists(st.tuples(words, st.booleans()), max_size=8))
def test_each_lost_word_is_put_back_at_its_place(parts: list[tuple[str, bool]]) -> None:
    text = " ".join(word for word, _ in parts)
    assert with_lost_words(text, " ".join(word for word, is_kept in parts if is_kept)) == text


@given(st.lists(words, max_size=6).map(" ".join), st.lists(words, max_size=6).map(" ".join))
def test_all_written_words_stay_in_their_order(text: str, made: str) -> None:
    left = iter(with_lost_words(text, made).split())
    assert all(word in left for word in made.split())


@pytest.mark.parametrize(
    "text, made",
    [
        ("teh cat", "the cat"),
        ("the c at sat", "the cat sat"),
        ("thecat sat", "the cat sat"),
        ("th ec at", "the cat"),
        ("a cat", "the cat"),
        ("a cat", "a small cat"),
        ("", ""),
    ],
)
def test_changed_joined_split_and_added_words_stay(text: str, made: str) -> None:
    assert with_lost_words(text, made) == made


@pytest.mark.parametrize(
    "text, made, whole",
    [
        ("teh big cat sat", "the cat sat", "the big cat sat"),
        ("the cat sta down", "the cat", "the cat sta down"),
        ("i lkie teh the", "i like the", "i like teh the"),
    ],
)
def test_a_lost_word_is_put_back_beside_corrected_words(text: str, made: str, whole: str) -> None:
    assert with_lost_words(text, made) == whole
