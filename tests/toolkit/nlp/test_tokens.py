"""Texts become tokens, tokens become numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import DataError
from toolkit.nlp.tokens import PAD_ID, UNK_ID, Vocabulary, tokenizer

COUNTS = st.dictionaries(st.text(max_size=4), st.integers(0, 5))


@pytest.mark.parametrize(
    "kind, lowercase, text, tokens",
    [
        ("words", False, "It's 5 o'clock.", ["It", "'", "s", "5", "o", "'", "clock", "."]),
        ("words", False, "snake_case", ["snake", "_", "case"]),
        ("words", False, "Über größe 東京 café", ["Über", "größe", "東京", "café"]),
        ("words", False, "a-b…  :)", ["a", "-", "b", "…", ":", ")"]),
        ("words", False, " \t\n", []),
        ("words", True, "GROẞE Worte", ["große", "worte"]),
        ("whitespace", False, " It's\u00a0so,  yes.\n", ["It's", "so,", "yes."]),
    ],
)
def test_words_are_runs_of_letters_and_digits_or_single_characters_or_parts_between_blanks(
    kind: str, lowercase: bool, text: str, tokens: list[str]
) -> None:
    assert tokenizer(kind, lowercase=lowercase)(text) == tokens


@given(st.text())
def test_words_keep_every_character_but_whitespace(text: str) -> None:
    assert "".join(tokenizer("words", lowercase=False)(text)) == "".join(text.split())


def test_ids_are_ordered_by_count_and_then_by_spelling() -> None:
    vocabulary = Vocabulary.from_counts({"b": 2, "c": 3, "a": 2, "never": 0})
    assert vocabulary.tokens == ("c", "a", "b")
    assert vocabulary.counts == (3, 2, 2)
    assert vocabulary.encode(["a", "b", "c", "never", "a"]).tolist() == [3, 4, 2, UNK_ID, 3]


def test_min_count_and_max_size_limit_the_vocabulary() -> None:
    counts = {"a": 4, "b": 3, "c": 2, "d": 1}
    assert Vocabulary.from_counts(counts, min_count=2).tokens == ("a", "b", "c")
    assert Vocabulary.from_counts(counts, max_size=3).tokens == ("a",)
    assert len(Vocabulary.from_counts(counts, max_size=3)) == 3


def test_an_empty_list_is_encoded_as_one_unknown_token() -> None:
    assert Vocabulary.from_counts({"a": 1}).encode([]).tolist() == [UNK_ID]


def test_a_token_spelt_like_padding_is_not_padding() -> None:
    vocabulary = Vocabulary.from_counts({"<pad>": 1, "<unk>": 1})
    assert vocabulary.encode(["<pad>", "<unk>"]).tolist() == [2, 3]
    assert vocabulary.decode([PAD_ID, UNK_ID, 2]) == ["<pad>", "<unk>", "<pad>"]


@given(COUNTS, st.integers(1, 3), st.none() | st.integers(3, 6))
def test_a_vocabulary_does_not_depend_on_the_order_of_the_counts(
    counts: dict[str, int], min_count: int, max_size: int | None
) -> None:
    backwards = dict(reversed(counts.items()))
    vocabulary = Vocabulary.from_counts(counts, min_count=min_count, max_size=max_size)
    assert vocabulary == Vocabulary.from_counts(backwards, min_count=min_count, max_size=max_size)


@given(COUNTS)
def test_known_tokens_survive_encoding(counts: dict[str, int]) -> None:
    vocabulary = Vocabulary.from_counts(counts)
    ids = vocabulary.encode(vocabulary.tokens or ["x"])
    assert ids.dtype == np.int64
    if vocabulary.tokens:
        assert tuple(vocabulary.decode(ids)) == vocabulary.tokens
        assert ids.tolist() == list(range(2, len(vocabulary)))


def test_a_vocabulary_is_saved_and_loaded(tmp_path: Path) -> None:
    vocabulary = Vocabulary.from_counts({"größe": 2, "\u2028": 1, '"': 1, "": 1})
    vocabulary.save(tmp_path / "vocabulary.json")
    assert Vocabulary.load(tmp_path / "vocabulary.json") == vocabulary


@pytest.mark.parametrize("content", [None, "{", "[]", '{"tokens": 3}'])
def test_a_damaged_vocabulary_is_named(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "vocabulary.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(DataError, match=r"vocabulary\.json: no vocabulary"):
        Vocabulary.load(path)
