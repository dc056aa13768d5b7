"""Conversion between spans of words and of characters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.workloads.entity_disambiguation.data.entities.spans import (
    characters_of_words,
    word_places,
    words_of_characters,
)


@given(st.text(), st.data())
def test_words_are_the_same_after_conversion_to_characters_and_back(text: str, data: st.DataObject) -> None:
    count = len(text.split())
    if count == 0:
        return
    start = data.draw(st.integers(0, count - 1))
    end = data.draw(st.integers(start + 1, count))
    left, right = characters_of_words(text, (start, end))
    assert text[left:right].split() == text.split()[start:end]
    assert text[left:right] == text[left:right].strip()
    assert words_of_characters(text, (left, right)) == (start, end)


@given(st.text(), st.data())
def test_span_of_characters_becomes_the_words_that_it_touches(text: str, data: st.DataObject) -> None:
    if not text.strip():
        return
    left = data.draw(st.integers(0, len(text) - 1))
    right = data.draw(st.integers(left + 1, len(text)))
    if not text[left:right].strip():
        with pytest.raises(ValueError, match="blank"):
            words_of_characters(text, (left, right))
        return
    start, end = words_of_characters(text, (left, right))
    places = word_places(text)
    assert all((place[0] < right and left < place[1]) == (start <= i < end) for i, place in enumerate(places))
