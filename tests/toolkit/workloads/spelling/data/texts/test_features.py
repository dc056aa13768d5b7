"""The 13 features of words."""

from __future__ import annotations

import pytest

from toolkit.workloads.spelling.data.texts.features import FEATURES, WordFeatures, stop_words

FREQUENCIES = {"the": 100, "of": 90, "The": 20, "cat": 5, "Paris": 3, "don't": 500}


@pytest.fixture
def features() -> WordFeatures:
    return WordFeatures(FREQUENCIES, 2)


@pytest.mark.parametrize(
    "piece, expected",
    [
        ("the", {"lower", "stop_word", "alphabetic", "in_dictionary", "lower_in_dictionary"}),
        ("The", {"title", "stop_word", "alphabetic", "in_dictionary", "lower_in_dictionary"}),
        ("THE", {"upper", "stop_word", "alphabetic", "lower_in_dictionary"}),
        ("Paris", {"title", "alphabetic", "in_dictionary"}),
        ("teh", {"lower", "alphabetic"}),
        ("don't", {"lower", "in_dictionary", "lower_in_dictionary"}),
        ("1,000", {"number"}),
        ("...", {"punctuation"}),
        ("$", {"punctuation", "currency"}),
        ("a@b.org", {"email", "lower"}),
        ("www.example.org", {"url", "lower"}),
    ],
)
def test_a_piece_has_its_features(features, piece, expected):
    (row,), _ = features.of([piece])
    assert {name for name, value in zip(FEATURES, row, strict=True) if value} == expected


def test_each_piece_has_a_row_and_the_number_of_its_word(features):
    rows, words = features.of(["(the", "cat)."])
    assert words.tolist() == [0, 0, 1, 1]
    spaces = rows[:, FEATURES.index("space_after")]
    assert spaces.tolist() == [0, 1, 0, 0], "nothing follows the last word"


def test_a_cached_word_has_the_same_features(features):
    first, _ = features.of(["cat", "cat"])
    again, _ = features.of(["cat", "cat"])
    assert (first == again).all()
    assert first.sum() == again.sum() == 2 * 4 + 1


def test_a_text_without_words_has_no_rows(features):
    rows, words = features.of([])
    assert rows.shape == (0, 13)
    assert words.shape == (0,)


def test_stop_words_are_the_most_frequent_words_of_letters():
    assert stop_words(FREQUENCIES, 2) == {"the", "of"}
    assert stop_words({"The": 5, "cat": 4, "the": 1, "1,000": 9}, 1) == {"the"}
