"""Tokenizers: made, saved, loaded; texts to numbers and back, and whose word a token is."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from tests.toolkit.nlp.sentences import TEXTS
from toolkit.errors import DataError
from toolkit.nlp.tokens import tokenizer as words_of
from toolkit.workloads.spelling.tokenizers.make_tokenizer import (
    SPECIAL,
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


def test_special_tokens_are_the_first_ones(made):
    assert (made.padding, made.unknown, made.begin, made.end) == (0, 1, 2, 3)


def test_texts_of_known_words_come_back(made):
    for text in TEXTS:
        spaced = " ".join(word for word in CUT(text) if word.isascii())
        assert made.decode(made.encode(spaced)) == spaced


def test_special_tokens_are_left_out_of_the_text(made):
    numbers = [made.begin, *made.encode("mill"), made.end, made.padding]
    assert made.decode(numbers) == "mill"


def test_what_looks_like_a_special_token_is_text(made):
    numbers = made.encode("the <eos> of <pad> mill")
    assert not {made.padding, made.begin, made.end} & set(numbers.tolist())


@given(NORMALISED)
def test_any_text_comes_back_from_bpe_and_bytes(text):
    for name in ("bpe", "bytes"):
        tokenizer = TextTokenizer(MADE[name])
        numbers = tokenizer.encode(text)
        assert tokenizer.decode(numbers) == text
        assert tokenizer.unknown not in numbers


@given(ASCII)
def test_ascii_comes_back_from_characters(text):
    tokenizer = TextTokenizer(MADE["characters"])
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_characters_are_99():
    assert len(TextTokenizer(characters())) == 99
    assert len(TextTokenizer(byte_values())) == 260


def test_another_character_is_unknown():
    tokenizer = TextTokenizer(characters())
    assert tokenizer.encode("ä—a").tolist()[:2] == [tokenizer.unknown] * 2


# ---- words


@given(NORMALISED)
def test_tokens_of_a_text_are_those_of_its_words_in_bpe(text):
    tokenizer = TextTokenizer(BPE)
    tokens, of = tokenizer.encode_words(text)
    assert tokens.tolist() == tokenizer.encode(text).tolist()
    assert sorted(set(of.tolist())) == list(range(len(text.split())))


@given(NORMALISED)
def test_every_word_has_tokens_and_comes_back_from_them(text):
    for name in ("bpe", "bytes"):
        tokenizer = TextTokenizer(MADE[name])
        tokens, of = tokenizer.encode_words(text)
        groups = [tokens[of == place] for place in range(len(text.split()))]
        assert all(map(len, groups))
        assert " ".join(map(tokenizer.decode, groups)) == text


def test_a_long_word_is_encoded_as_any_other():
    tokenizer = TextTokenizer(BPE)
    tokens, of = tokenizer.encode_words("mill " + "x" * 100)
    assert tokenizer.decode(tokens) == "mill " + "x" * 100
    assert len(tokens) == len(of)


def test_a_text_without_words_has_no_tokens(made):
    tokens, of = made.encode_words("  ")
    assert tokens.shape == of.shape == (0,)
    assert tokens.dtype == of.dtype == "int32"


def test_a_word_that_is_nothing_without_accents_is_unknown():
    tokenizer = TextTokenizer(train_bpe(TEXTS, 300, strip_accents=True))
    tokens, of = tokenizer.encode_words("a \u0301 b")
    assert tokens[of == 1].tolist() == [tokenizer.unknown]


# ---- byte-level BPE


def test_accents_are_stripped_where_asked():
    stripped = TextTokenizer(train_bpe(TEXTS, 300, strip_accents=True))
    assert stripped.encode("éa").tolist() == stripped.encode("ea").tolist()
    assert stripped.decode(stripped.encode("Café")) == "Cafe"
    kept = TextTokenizer(BPE)
    assert unicodedata.is_normalized("NFC", kept.decode(kept.encode("Café")))


def test_training_again_gives_the_same_tokenizer():
    assert train_bpe(TEXTS, 320).to_str() == BPE.to_str()


def test_frequent_words_become_single_tokens():
    tokenizer = TextTokenizer(BPE)
    assert len(tokenizer) == 320
    assert len(tokenizer.encode("the")) == 1


def test_what_stands_beside_each_other_once_is_not_joined():
    assert len(TextTokenizer(train_bpe(["qzx"], 400))) == 260
    assert len(TextTokenizer(train_bpe(["qzx"], 400, min_frequency=1))) == 260 + 3


def test_texts_are_read_as_a_stream():
    read = 0

    def lines() -> Iterator[str]:
        nonlocal read
        for text in TEXTS:
            read += 1
            yield text

    assert train_bpe(lines(), 300).get_vocab_size() == 300
    assert read == len(TEXTS)


# ---- files


def test_a_file_that_is_none_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"none\.json cannot be read"):
        load_tokenizer(tmp_path / "none.json")
    (tmp_path / "other.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match=r"other\.json holds no tokenizer"):
        load_tokenizer(tmp_path / "other.json")


def test_a_tokenizer_of_others_lacks_special_tokens(tmp_path):
    from tokenizers import models

    save(Tokenizer(models.WordLevel({"<unk>": 0, "<pad>": 1}, unk_token="<unk>")), tmp_path / "t.json")
    with pytest.raises(DataError, match=r"t\.json lacks <bos>, <eos>; make it with"):
        load_tokenizer(tmp_path / "t.json")
    assert SPECIAL == ("<pad>", "<unk>", "<bos>", "<eos>")
