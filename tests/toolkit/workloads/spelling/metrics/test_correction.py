"""The scores of corrections: F1 on lines whose value is obvious, edit distance, bounds."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from toolkit.workloads.spelling.data.texts.words import normalised
from toolkit.workloads.spelling.metrics.correction import CorrectionScore, score_corrections
from toolkit.workloads.spelling.metrics.counts import Counts

texts = st.text("ab ", max_size=12).map(normalised)
words = texts.filter(bool)
lines = st.lists(st.tuples(texts, texts, texts), min_size=2, max_size=6)


def score(*triples: tuple[str, str, str]) -> CorrectionScore:
    """Score triples of input, prediction and gold."""
    inputs, predictions, golds = zip(*triples, strict=True)
    return score_corrections(inputs, predictions, golds)


@pytest.mark.parametrize(
    "text, prediction, gold, found",
    [
        ("teh catsat on a m at", "the cat sat on a mat", "the cat sat on a mat", (4, 0, 0)),  # perfect
        ("teh cat zat", "teh cat zat", "the cat sat", (0, 0, 2)),  # unchanged
        ("the cat sat", "the cad sat", "the cat sat", (0, 1, 0)),  # a spoilt word
        ("thecat sat", "the cat sat", "the cat sat", (2, 0, 0)),  # both parts of a split word are right
        ("thecat sat", "the cad sat", "the cat sat", (1, 1, 1)),  # one of them is
        ("the ca t sat", "theca t sat", "the cat sat", (0, 2, 1)),  # wrongly merged words
        ("thecat s at heer", "the cat sat here", "the cat sat here", (4, 0, 0)),  # after a split and a merge
        ("  teh\tcat ", " the   cat", "the cat\u00a0", (1, 0, 0)),  # white space
        # Misspelt: The, cat, eats, fish. The prediction has The and eats.
        # Changed: Te, cteats, delicious. Only Te became a word of the gold line; cteats became act eats.
        (
            "Te cute cteats delicious fi sh.",
            "The cute act eats delicate fi sh.",
            "The cute cat eats delicious fish.",
            (2, 2, 2),
        ),
    ],
)
def test_words_are_counted_at_their_places(
    text: str, prediction: str, gold: str, found: tuple[int, int, int]
) -> None:
    assert score((text, prediction, gold)).counts == Counts.of_sums(*found)


def test_an_unchanged_line_without_errors_counts_1() -> None:
    found = score(("fine", "fine", "fine"), ("teh", "teh", "the"), ("fine", "fin", "fine"))
    assert (found.lines, found.f1_sum) == (3, 1.0)
    assert found.sequence_f1 == pytest.approx(1 / 3)


def test_the_score_of_no_lines_is_0() -> None:
    nothing = CorrectionScore()
    assert (nothing.counts.f1, nothing.sequence_f1, nothing.mned) == (0.0, 0.0, 0.0)


def mned(*pairs: tuple[str, str]) -> float:
    return score(*((prediction, prediction, gold) for prediction, gold in pairs)).mned


def test_an_edit_distance_is_divided_by_the_length_of_the_longer_line() -> None:
    # kitten, sitting: two replacements, one insertion. A swap is two edits.
    assert mned(("kitten", "sitting")) == pytest.approx(3 / 7)
    assert mned(("ab", "ba")) == 1.0


def test_edit_distances_are_averaged_over_lines_after_white_space_is_normalised() -> None:
    assert mned(("ab", "cd"), (" a  b ", "a b"), ("", "")) == pytest.approx(1 / 3)


@given(lines, st.integers(0, 6))
def test_scores_of_parts_add_up(triples: list[tuple[str, str, str]], cut: int) -> None:
    cut = min(max(cut, 1), len(triples) - 1)
    whole, parts = score(*triples), score(*triples[:cut]) + score(*triples[cut:])
    assert whole.counts == parts.counts
    assert whole.lines == parts.lines
    assert (whole.f1_sum, whole.distances) == pytest.approx((parts.f1_sum, parts.distances))


@given(st.lists(st.tuples(words, texts, words), min_size=1, max_size=6))
def test_scores_are_between_0_and_1_and_the_gold_line_is_best(triples: list[tuple[str, str, str]]) -> None:
    found = score(*triples)
    assert 0 <= found.counts.f1 <= 1
    assert 0 <= found.sequence_f1 <= 1
    assert 0 <= found.mned <= 1
    perfect = score(*((text, gold, gold) for text, _, gold in triples))
    assert perfect.sequence_f1 == 1
    assert perfect.counts.false_positives == perfect.counts.false_negatives == 0
