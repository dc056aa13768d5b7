"""Rescoring by a dictionary."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tests.toolkit.decoding.tables import BEGIN, TableModel
from toolkit.decoding.best_first import best_first
from toolkit.decoding.dictionary import DictionaryPenalty, DictionaryPrefixes
from toolkit.decoding.language_model import Limits

WORDS = ["cat", "cats", "dog", "don't", "well-known", "Rome"]
LETTERS = "catsdogRn'-. 1’é�"


def text_of(tokens: Sequence[int]) -> str:
    return "".join(LETTERS[token % len(LETTERS)] for token in tokens)


def cost(text: str, complete: bool = True) -> float:
    return -DictionaryPenalty(DictionaryPrefixes(WORDS), lambda _: text, 1.0)((), complete)


@given(st.lists(st.text("abc", max_size=4)), st.text("abc", max_size=5))
def test_prefixes_are_what_a_word_begins_with(words: list[str], prefix: str) -> None:
    found = DictionaryPrefixes(words)
    assert found.begins_one(prefix) == any(word.startswith(prefix) for word in words)
    assert found.has(prefix) == (prefix in words) or prefix == ""


def test_each_word_that_is_in_no_dictionary_costs() -> None:
    assert cost("the cat and a dog") == 3
    assert cost("Cat, 'dog' cats. don't well-known Rome!") == 0
    assert cost("rome") == 1
    assert cost("3rd 1 + %") == 0


def test_a_word_that_grows_costs_once_no_word_begins_with_it() -> None:
    assert cost("do", complete=False) == 0
    assert cost("do") == 1
    assert cost("dox", complete=False) == 1
    assert cost("do ", complete=False) == 1
    assert cost("don'", complete=False) == 0
    assert cost("'dog'", complete=False) == 0


@given(st.lists(st.integers(0, len(LETTERS) - 1), max_size=12))
def test_going_on_gives_nothing_back(tokens: list[int]) -> None:
    """Or the first complete sequence of best-first search would not be the best one."""
    penalty = DictionaryPenalty(DictionaryPrefixes(WORDS), text_of, 1.0)
    costs = [penalty(tokens[:length], False) for length in range(len(tokens) + 1)]
    costs.append(penalty(tokens, True))
    assert costs == sorted(costs, reverse=True)


def test_search_prefers_words_of_the_dictionary() -> None:
    """Letters s, c, a, t, all about as probable: with a high price only words are left."""
    model = TableModel(20, 5, 3, sharpness=0.1)
    letters = {1: "s", 2: "c", 3: "a", 4: "t"}

    def spelt(tokens: Sequence[int]) -> str:
        return "".join(letters[token] for token in tokens)

    penalty = DictionaryPenalty(DictionaryPrefixes(["cat", "act", "a"]), spelt, 50.0)
    limits = Limits(begin=BEGIN, end=99, length=3)
    plain = {spelt(each.tokens) for each in best_first(model, limits, budget=500)}
    found = {spelt(each.tokens) for each in best_first(model, limits, budget=500, rescore=penalty)}
    assert not plain <= {"cat", "act"}
    assert found == {"cat", "act"}
