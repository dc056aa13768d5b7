"""Words and pieces of texts, special pieces, labels."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.workloads.spelling.data.texts import token_types
from toolkit.workloads.spelling.data.texts.token_types import is_special
from toolkit.workloads.spelling.data.texts.words import pieces_of, word_labels

KINDS = {
    "punctuation": token_types.is_punctuation,
    "number": token_types.is_number,
    "email": token_types.is_email,
    "url": token_types.is_url,
    "currency": token_types.is_currency,
}


@pytest.mark.parametrize(
    "text, pieces",
    [
        ("a", ["a"]),
        ("of it", ["of", "it"]),
        ('("don\'t!"', ['("', "don't", '!"']),
        ("U.S. (2,000 km)", ["U.S", ".", "(", "2,000", "km", ")"]),
        ("well-known—yes", ["well-known—yes"]),
        ("…", ["…"]),
        ("", []),
    ],
)
def test_pieces_are_separated_by_white_space_and_punctuation_around_words(text, pieces):
    assert [piece.text for piece in pieces_of(text)] == pieces


@given(st.text(alphabet=st.sampled_from("aZ9.,-'_ \t\n$é"), max_size=30))
def test_pieces_have_all_characters_but_white_space(text):
    pieces = pieces_of(text)
    assert "".join(piece.text for piece in pieces) == "".join(text.split())
    assert all(text[slice(*piece.characters)] == piece.text for piece in pieces)


@pytest.mark.parametrize(
    "piece, kind",
    [
        ("...", "punctuation"),
        ("_", "punctuation"),
        ("1,000.5", "number"),
        ("1990s", "number"),
        ("3rd", "number"),
        ("½", "number"),
        ("10:30", "number"),
        ("-5%", "number"),
        ("someone@example.org", "email"),
        ("http://a/b", "url"),
        ("www.example.com", "url"),
        ("en.wikipedia.org/wiki/Cat", "url"),
        ("€", "currency"),
        ("word", None),
        ("B2B", None),
        ("don't", None),
        ("ten", None),
        ("U.S", None),
        ("word@", None),
    ],
)
def test_special_pieces_are_distinguished_from_words(piece, kind):
    assert is_special(piece) == (kind is not None)
    assert kind is None or KINDS[kind](piece)


@pytest.mark.parametrize(
    "text, target, labels",
    [
        ("teh cat", "the cat", [1, 0]),
        ("the cat", "the cat", [0, 0]),
        ("thecat", "the cat", [1]),
        ("the c at", "the cat", [0, 1, 1]),
        ("", "", []),
    ],
)
def test_a_word_that_differs_is_labelled_1(text, target, labels):
    assert word_labels(text, target) == labels
