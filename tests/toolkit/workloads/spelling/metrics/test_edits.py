"""Edits of characters, the words that they touch, the words that stay."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from toolkit.errors import DataError
from toolkit.workloads.spelling.data.texts.words import normalised
from toolkit.workloads.spelling.metrics import alignment
from toolkit.workloads.spelling.metrics.edits import Edit, edited_words, edits_between, matching_words

texts = st.text("ab ", max_size=12).map(normalised)


def edits_by_the_book(text: str, other: str) -> list[Edit]:
    """Wagner and Fischer, cell by cell; from the end prefer delete, then insert, then the diagonal."""
    table = [[0] * (len(other) + 1) for _ in range(len(text) + 1)]
    for at in range(len(text) + 1):
        for to in range(len(other) + 1):
            costs = [table[at - 1][to] + 1] if at else []
            costs += [table[at][to - 1] + 1] if to else []
            if at and to and diagonal(text[at - 1], other[to - 1]) is not None:
                costs.append(table[at - 1][to - 1] + diagonal(text[at - 1], other[to - 1]))
            table[at][to] = min(costs, default=0)
    at, to, edits = len(text), len(other), []
    while at or to:
        if at and table[at - 1][to] + 1 == table[at][to]:
            at -= 1
            edits.append(Edit("delete", at, to))
        elif to and table[at][to - 1] + 1 == table[at][to]:
            to -= 1
            edits.append(Edit("insert", at, to))
        else:
            at, to = at - 1, to - 1
            if text[at] != other[to]:
                edits.append(Edit("replace", at, to))
    return edits[::-1]


def diagonal(one: str, other: str) -> int | None:
    if one == other:
        return 0
    return None if " " in (one, other) else 1


def words_by_the_book(words: list[str], others: list[str]) -> tuple[set[int], set[int]]:
    """A longest common subsequence; from the end prefer the diagonal, then insert, then delete."""
    table = [[0] * (len(others) + 1) for _ in range(len(words) + 1)]
    for at, word in enumerate(words):
        for to, other in enumerate(others):
            table[at + 1][to + 1] = max(table[at][to] + (word == other), table[at][to + 1], table[at + 1][to])
    at, to, pairs = len(words), len(others), []
    while at and to:
        same = words[at - 1] == others[to - 1]
        if table[at - 1][to - 1] + same == table[at][to]:
            at, to = at - 1, to - 1
            if same:
                pairs.append((at, to))
        elif table[at][to - 1] == table[at][to]:
            to -= 1
        else:
            at -= 1
    return {at for at, _ in pairs}, {to for _, to in pairs}


@given(st.lists(st.tuples(texts, texts), max_size=6))
def test_edits_equal_those_of_the_full_table(pairs: list[tuple[str, str]]) -> None:
    found = edits_between([text for text, _ in pairs], [other for _, other in pairs])
    assert found == [edits_by_the_book(*pair) for pair in pairs]


@given(st.lists(st.tuples(texts, texts), max_size=6))
def test_matching_words_equal_those_of_the_full_table(pairs: list[tuple[str, str]]) -> None:
    found = matching_words([text for text, _ in pairs], [other for _, other in pairs])
    assert found == [words_by_the_book(text.split(), other.split()) for text, other in pairs]


def test_texts_are_compared_in_several_batches_if_necessary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "_CELLS_OF_BATCH", 40)
    texts, others = ["abab", "a b", "", "aab ba", "b"] * 3, ["baba", "ab", "ba", "ab", "bbb b"] * 3
    expected = [edits_by_the_book(*pair) for pair in zip(texts, others, strict=True)]
    assert edits_between(texts, others) == expected


def test_long_texts_are_compared_like_short_ones() -> None:
    # Costs of so many rows do not fit into 16 bits.
    text = "ab cd " * 1000 + "end"
    assert edits_between([text], ["x" + text[:-1]]) == [[Edit("insert", 0, 0), Edit("delete", 6002, 6003)]]


def test_texts_that_are_too_long_and_too_different_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "_CELLS_OF_PAIR", 1000)
    assert edits_between(["a" * 400], ["a" * 400]) == [[]]
    with pytest.raises(DataError, match=r"400 characters .* 400 edits .* belong together"):
        edits_between(["a" * 400], ["b" * 400])


def test_characters_outside_the_basic_plane_are_one_character() -> None:
    assert edits_between(["a🙂c"], ["a🙃c"]) == [[Edit("replace", 1, 1)]]


@pytest.mark.parametrize(
    "text, other, touched",
    [
        ("tihs is a test", "this is a tests", ({0, 3}, {0, 3})),
        ("the catsat there", "the cat sat there", ({1}, {1, 2})),  # both parts of a split word
        ("the c a t sat", "the cat sat", ({1, 2, 3}, {1})),  # all merged words
    ],
)
def test_an_edit_touches_words_of_both_texts(
    text: str, other: str, touched: tuple[set[int], set[int]]
) -> None:
    (edits,) = edits_between([text], [other])
    one, two = edited_words(text, other, edits)
    assert (set(one), set(two)) == touched
