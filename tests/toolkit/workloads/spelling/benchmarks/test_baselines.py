"""Baselines: predictions without a model."""

from __future__ import annotations

import pytest

from toolkit.workloads.spelling.benchmarks.baselines import Corrector, baselines, unknown_words

WORDS = {"the": 100, "cat": 20, "cart": 10, "sat": 10, "don't": 5, "well-known": 2, "Rome": 2}


@pytest.mark.parametrize(
    "text, labels",
    [
        ("The cat zat", [0, 0, 1]),
        ('"Don\'t", (cat)... the', [0, 0, 0]),
        ("Rome rome", [0, 1]),
        ("1999, 3rd $5 www.cat.org me@cat.org", [0] * 5),
        ("well-known well-cat", [0, 1]),
        ("", []),
    ],
)
def test_a_word_is_an_error_if_one_of_its_pieces_is_unknown(text: str, labels: list[int]) -> None:
    assert unknown_words(text, WORDS) == labels


@pytest.mark.parametrize(
    "text, corrected",
    [
        ("teh caat sat", "the cat sat"),
        ('  "Teh, (CAAT)"\tsat 1999 caat.org ', '  "The, (CAT)"\tsat 1999 caat.org '),
        ("xylophone", "xylophone"),
    ],
)
def test_a_word_is_replaced_by_the_most_frequent_of_the_nearest_words_if_there_are_any(
    text: str, corrected: str
) -> None:
    """Case, punctuation, white space and special words stay."""
    assert Corrector(WORDS)(text) == corrected


def test_each_kind_of_benchmark_has_its_baselines() -> None:
    made = baselines(WORDS)
    assert made["sed_words"]["out of dictionary (baseline)"]("teh cat") == "1 0"
    texts = ("teh cat", "the cat", "")
    assert [*map(made["sed_sequence"]["out of dictionary (baseline)"], texts)] == ["1", "0", "0"]
    assert made["sec"]["symspell (baseline)"]("teh cat") == "the cat"
    assert made["sec"]["do nothing (baseline)"]("teh cat") == "teh cat"
    assert made["tokenization_repair"]["do nothing (baseline)"]("teh cat") == "teh cat"
