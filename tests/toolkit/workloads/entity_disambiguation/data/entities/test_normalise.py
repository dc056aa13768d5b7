"""The key of an alias is the same for all its spellings."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.workloads.entity_disambiguation.data.entities.profiles import normalise


@pytest.mark.parametrize(
    "text, key",
    [
        ("Côte d'Ivoire", "cote divoire"),
        ("  ISO 3166-1:GA ", "iso 31661ga"),
        ("U.S.", "us"),
        ("São Tomé", "sao tome"),
        ("東京", "東京"),
        ("...", ""),
    ],
)
def test_only_letters_digits_and_spaces_are_kept(text: str, key: str) -> None:
    assert normalise(text) == key


@given(st.text())
def test_keys_have_no_accents_and_no_punctuation(text: str) -> None:
    key = normalise(text)
    assert key == key.strip()
    assert not any(map(unicodedata.combining, unicodedata.normalize("NFD", key)))
    assert all(each.isalnum() or each == " " for each in key)


@given(st.text())
def test_normalising_twice_changes_nothing(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


@given(st.text())
def test_composed_and_decomposed_letters_are_equal(text: str) -> None:
    assert normalise(unicodedata.normalize("NFC", text)) == normalise(unicodedata.normalize("NFD", text))
