"""The F1 of corrections on lines whose value can be seen, and its bounds."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from toolkit.workloads.spelling.data.texts.words import normalised
from toolkit.workloads.spelling.metrics.correction import CorrectionScore, misspelt_words, score_corrections
from toolkit.workloads.spelling.metrics.counts import Counts

texts = st.text("ab ", max_size=12).map(normalised)
words = texts.filter(bool)
lines = st.lists(st.tuples(texts, texts, texts), min_size=2, max_size=6)


def score(*triples: tuple[str, str, str]) -> CorrectionScore:
    """Of triples input, prediction, gold."""
    inputs, predictions, golds = zip(*triples, strict=True)
    return score_corrections(inputs, predictions, golds)


def counts(text: str, prediction: str, gold: str) -> tuple[int, int, int]:
    found = score((text, prediction, gold)).counts
    return found.true_positives, found.false_positives, found.false_negatives


def test_half_of_the_words_are_restored_and_half_of_the_changes_are_right() -> None:
    # Misspelt: The, cat, eats, fish. Of them The and eats stand in the prediction.
    # Changed: Te, cteats, delicious. What became of cteats (act eats) and of delicious is not gold.
    found = score(
        (
            "Te cute cteats delicious fi sh.",
            "The cute act eats delicate fi sh.",
            "The cute cat eats delicious fish.",
        )
    )
    assert found.counts == Counts(true_positives=2, false_positives=2, false_negatives=2)
    assert (found.counts.f1, found.counts.precision, found.counts.recall) == (0.5, 0.5, 0.5)


def test_a_perfect_correction_scores_1() -> None:
    assert counts("teh catsat on a m at", "the cat sat on a mat", "the cat sat on a mat") == (4, 0, 0)


def test_doing_nothing_finds_nothing_and_spoils_nothing() -> None:
    assert counts("teh cat zat", "teh cat zat", "the cat sat") == (0, 0, 2)


def test_a_word_that_is_spoilt_is_a_false_positive() -> None:
    assert counts("the cat sat", "the cad sat", "the cat sat") == (0, 1, 0)


def test_of_a_word_split_in_two_both_parts_must_be_right() -> None:
    assert counts("thecat sat", "the cat sat", "the cat sat") == (2, 0, 0)
    assert counts("thecat sat", "the cad sat", "the cat sat") == (1, 1, 1)


def test_words_merged_wrongly_are_all_false_positives() -> None:
    assert counts("the ca t sat", "theca t sat", "the cat sat") == (0, 2, 1)


def test_a_split_before_a_merge_moves_the_words_behind_them() -> None:
    assert counts("thecat s at heer", "the cat sat here", "the cat sat here") == (4, 0, 0)


def test_a_line_without_anything_to_do_counts_1_if_it_is_left_alone() -> None:
    found = score(("fine", "fine", "fine"), ("teh", "teh", "the"), ("fine", "fin", "fine"))
    assert (found.lines, found.f1_sum) == (3, 1.0)
    assert found.sequence_f1 == pytest.approx(1 / 3)


def test_white_space_is_normalised_first() -> None:
    assert counts("  teh\tcat ", " the   cat", "the cat\u00a0") == (1, 0, 0)


def test_nothing_scores_0() -> None:
    assert (CorrectionScore().counts.f1, CorrectionScore().sequence_f1) == (0.0, 0.0)


@given(lines, st.integers(0, 6))
def test_scores_of_parts_add_up(triples: list[tuple[str, str, str]], cut: int) -> None:
    cut = min(max(cut, 1), len(triples) - 1)
    whole, parts = score(*triples), score(*triples[:cut]) + score(*triples[cut:])
    assert whole.counts == parts.counts
    assert (whole.lines, whole.f1_sum) == (parts.lines, pytest.approx(parts.f1_sum))


@given(st.lists(st.tuples(words, texts, words), min_size=1, max_size=6))
def test_scores_lie_between_0_and_1_and_the_gold_itself_is_best(triples: list[tuple[str, str, str]]) -> None:
    found = score(*triples)
    assert 0 <= found.counts.f1 <= 1
    assert 0 <= found.sequence_f1 <= 1
    perfect = score(*((text, gold, gold) for text, _, gold in triples))
    assert perfect.sequence_f1 == 1
    assert perfect.counts.false_positives == perfect.counts.false_negatives == 0


def test_what_is_misspelt_can_be_found_once_for_many_predictions() -> None:
    inputs, golds = ["teh cat", "a dgo"], ["the cat", "a dog"]
    misspelt = misspelt_words(inputs, golds)
    assert misspelt == [{0}, {1}]
    predictions = ["the cat", "a god"]
    kept = score_corrections(inputs, predictions, golds, misspelt)
    assert kept == score_corrections(inputs, predictions, golds)
