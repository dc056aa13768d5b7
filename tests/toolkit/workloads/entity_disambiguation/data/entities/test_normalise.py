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
def test_all_spellings_have_one_key_without_accents_and_punctuation(text: str) -> None:
    key = normalise(text)
    spellings = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    assert {normalise(each) for each in (key, *spellings)} == {key}
    assert key == key.strip()
    assert not any(map(unicodedata.combining, unicodedata.normalize("NFD", key)))
    assert all(each.isalnum() or each == " " for each in key)
