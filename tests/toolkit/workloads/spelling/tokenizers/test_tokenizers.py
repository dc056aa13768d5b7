"""Tokenizers are made, saved and loaded; they encode texts, decode tokens and find the word of a token."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models

from tests.toolkit.nlp.sentences import TEXTS
from toolkit.errors import DataError
from toolkit.nlp.tokens import tokenizer as words_of
from toolkit.workloads.spelling.tokenizers.make_tokenizer import (
    byte_values,
    characters,
    save,
    train_bpe,
    words,
)
from toolkit.workloads.spelling.tokenizers.tokenizer import TextTokenizer, load_tokenizer

BPE = train_bpe(TEXTS, 320)
CUT = words_of("words", lowercase=False)
KNOWN = sorted({word for text in TEXTS for word in CUT(text)})
MADE = {"bpe": BPE, "characters": characters(), "bytes": byte_values(), "words": words(KNOWN)}
NORMALISED = st.text(st.characters(exclude_categories=("Cs",))).map(lambda text: " ".join(text.split()))
ASCII = st.text(st.characters(min_codepoint=32, max_codepoint=126))


@pytest.fixture(params=MADE)
def made(request: pytest.FixtureRequest, tmp_path: Path) -> TextTokenizer:
    save(MADE[request.param], tmp_path / "tokenizer.json")
    return load_tokenizer(tmp_path / "tokenizer.json")


def test_special_tokens_have_the_first_ids(made):
    assert (made.padding, made.unknown, made.begin, made.end) == (0, 1, 2, 3)


def test_texts_of_known_words_are_decoded_exactly(made):
    for text in TEXTS:
        spaced = " ".join(word for word in CUT(text) if word.isascii())
        assert made.decode(made.encode(spaced)) == spaced


def test_special_tokens_are_not_decoded(made):
    numbers = [made.begin, *made.encode("mill"), made.end, made.padding]
    assert made.decode(numbers) == "mill"


def test_the_name_of_a_special_token_in_a_text_is_plain_text(made):
    numbers = made.encode("the <eos> of <pad> mill")
    assert not {made.padding, made.begin, made.end} & set(numbers)


@given(ASCII)
def test_characters_decode_ascii_exactly(text):
    tokenizer = TextTokenizer(MADE["characters"])
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_a_character_beyond_ascii_is_unknown():
    tokenizer = TextTokenizer(characters())
    assert tokenizer.encode("ä—a")[:2] == [tokenizer.unknown] * 2


# ---- words


@given(NORMALISED)
def test_bpe_gives_a_text_the_tokens_of_its_words(text):
    tokenizer = TextTokenizer(BPE)
    tokens, of = tokenizer.encode_words(text)
    assert tokens == tokenizer.encode(text)
    assert sorted(set(of)) == list(range(len(text.split())))


@given(NORMALISED)
def test_every_word_has_tokens_and_is_decoded_exactly(text):
    for name in ("bpe", "bytes"):
        tokenizer = TextTokenizer(MADE[name])
        tokens, of = tokenizer.encode_words(text)
        groups = [
            [token for token, word in zip(tokens, of, strict=True) if word == place]
            for place in range(len(text.split()))
        ]
        assert all(map(len, groups))
        assert " ".join(map(tokenizer.decode, groups)) == text


def test_a_text_without_words_has_no_tokens(made):
    assert made.encode_words("  ") == ([], [])


def test_a_word_of_accents_is_unknown_if_accents_are_stripped():
    tokenizer = TextTokenizer(train_bpe(TEXTS, 300, strip_accents=True))
    tokens, of = tokenizer.encode_words("a \u0301 b")
    assert tokens[of.index(1) : of.index(2)] == [tokenizer.unknown]


# ---- byte-level BPE


def test_accents_are_stripped_if_requested():
    stripped = TextTokenizer(train_bpe(TEXTS, 300, strip_accents=True))
    assert stripped.encode("éa") == stripped.encode("ea")
    assert stripped.decode(stripped.encode("Café")) == "Cafe"
    kept = TextTokenizer(BPE)
    assert unicodedata.is_normalized("NFC", kept.decode(kept.encode("Café")))


def test_training_again_gives_the_same_tokenizer():
    assert train_bpe(TEXTS, 320).to_str() == BPE.to_str()


def test_tokens_that_are_adjacent_once_are_not_merged():
    assert len(TextTokenizer(train_bpe(["qzx"], 400))) == 260
    assert len(TextTokenizer(train_bpe(["qzx"], 400, min_frequency=1))) == 260 + 3


# ---- files


def test_a_missing_or_invalid_file_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"none\.json cannot be read"):
        load_tokenizer(tmp_path / "none.json")
    (tmp_path / "other.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match=r"other\.json is not a tokenizer"):
        load_tokenizer(tmp_path / "other.json")


def test_a_tokenizer_without_our_special_tokens_is_refused(tmp_path):
    save(Tokenizer(models.WordLevel({"<unk>": 0, "<pad>": 1}, unk_token="<unk>")), tmp_path / "t.json")
    with pytest.raises(DataError, match=r"t\.json lacks <bos>, <eos>; make it with"):
        load_tokenizer(tmp_path / "t.json")
