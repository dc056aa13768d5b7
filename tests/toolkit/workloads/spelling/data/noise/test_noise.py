"""Noise: what it changes and how much, and that a sample depends only on its seed and number."""

from __future__ import annotations

import dataclasses
import math
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from tests.toolkit.nlp.sentences import TEXTS
from toolkit.workloads.spelling.config.noise import (
    ArtificialNoise,
    ChainedNoise,
    MixedNoise,
    NoNoise,
    RealisticNoise,
    ReplaceNoise,
    SaveNoise,
    SubstringNoise,
    SwitchNoise,
    WhitespaceNoise,
)
from toolkit.workloads.spelling.data.noise.from_config import Noise, noise_of, noised
from toolkit.workloads.spelling.data.noise.misspellings import Misspellings
from toolkit.workloads.spelling.data.noise.noise import Sample, generator
from toolkit.workloads.spelling.data.noise.word_noise import editable_pieces, misspelt
from toolkit.workloads.spelling.data.texts.token_types import is_special
from toolkit.workloads.spelling.data.texts.words import pieces_of, word_labels

#: Most words of the texts, so that there are always enough words with a misspelling.
LISTED = Misspellings(
    {
        "the": ["teh", "hte"],
        "their": ["thier"],
        "which": ["wich"],
        "and": ["adn", "nad"],
        "are": ["aer"],
        "of": ["fo"],
        "in": ["ni"],
        "short": ["shrot", "shortt"],
        "one": ["noe"],
        "that": ["taht"],
        "mill": ["milll"],
        "river": ["rivver"],
        "dates": ["daets"],
        "maps": ["masp"],
        "songs": ["snogs"],
    }
)


def described(noise: object) -> Noise:
    return noise_of(noise, lambda path: LISTED)


ARTIFICIAL = described(ArtificialNoise())
REALISTIC = described(RealisticNoise(misspellings="listed.json"))
MIXED = described(MixedNoise(misspellings="listed.json"))
CHAIN = described(
    ChainedNoise(
        steps=(
            MixedNoise(misspellings="listed.json"), SaveNoise(), ReplaceNoise(), WhitespaceNoise(),
            SubstringNoise(max_characters=60),
        )
    )
)  # fmt: skip
SPACES = described(WhitespaceNoise())

words = st.text(st.characters(categories=("Lu", "Ll", "Nd")), min_size=1, max_size=12)
texts = st.lists(
    st.sampled_from(
        ["the", "And", "5,000", "1990s.", "€", "(a@b.org)", "www.b.org/x", "Cat's", "x", "(yes)", "—"]
    )
)


def within(share: float, expected: float, n: int) -> bool:
    """Whether a share of n lies within four standard deviations of a binomial one."""
    return abs(share - expected) < 4 * math.sqrt(expected * (1 - expected) / n)


# ---- the generator of a sample


def test_a_generator_depends_only_on_seed_and_number():
    assert generator(1, 2).random() == generator(1, 2).random()
    draws = {generator(seed, number).random() for seed in range(20) for number in range(20)}
    assert len(draws) == 400


# ---- edits of letters


def test_one_edit_inserts_deletes_swaps_or_replaces_a_letter():
    random = np.random.default_rng(0)
    made = {misspelt("ab", random, 0.0) for _ in range(5000)}
    assert {"a", "b", "ba"} <= made
    assert {len(each) for each in made} == {1, 2, 3}
    inserted = {each for each in made if len(each) == 3}
    assert all("a" in each and "b" in each and each.isascii() and each.isalpha() for each in inserted)
    replaced = {each for each in made if len(each) == 2} - {"ba"}
    assert all((each[0] == "a") != (each[1] == "b") for each in replaced)


def test_edits_do_not_undo_each_other():
    random = np.random.default_rng(0)
    assert all(misspelt("aa", random, 0.9) != "aa" for _ in range(5000))


def test_no_letter_is_moved_twice():
    """Inserted letters are ASCII, so they differ from the letters of the word."""
    random = np.random.default_rng(0)
    made = (
        "".join(letter for letter in misspelt("äöüß", random, 0.9) if letter in "äöüß") for _ in range(5000)
    )
    orders = {letters for letters in made if len(letters) == 4}
    assert orders == {"äöüß", "öäüß", "äüöß", "äößü", "öäßü"}


def test_no_letter_is_inserted_beside_an_edited_letter():
    random = np.random.default_rng(0)
    made = {misspelt("ä", random, 0.9) for _ in range(2000)}
    assert max(map(len, made)) == 3, "at most one letter before it and one after it"


def test_four_of_five_errors_are_single_edits():
    """The number of edits has a geometric distribution: P(1) = .8."""
    random = np.random.default_rng(0)
    word = "abcdefghijklmnopqrstuvwxyz"
    n = 4000
    single = sum(OSA.distance(word, misspelt(word, random, 0.2)) == 1 for _ in range(n))
    assert within(single / n, 0.8, n)


# ---- words


@pytest.mark.parametrize("noise", [ARTIFICIAL, REALISTIC, MIXED], ids=["artificial", "realistic", "mixed"])
@given(texts=texts, seed=st.integers(0, 2**32))
def test_noise_keeps_the_number_of_words_and_special_pieces(noise, texts, seed):
    sample = noise(Sample.of(" ".join(texts)), np.random.default_rng(seed))
    assert sample.target == " ".join(texts)
    assert len(sample.text.split()) == len(texts)
    for word, made in zip(texts, sample.text.split(), strict=True):
        if word != made:
            assert editable_pieces(word)
        kept = [piece.text for piece in pieces_of(word) if is_special(piece.text)]
        assert all(piece in made for piece in kept)


@pytest.mark.parametrize(
    "word", ["www.example.org,", "http://a.b/c-(d)/", "(someone@example.org),", "a@b.org's"]
)
def test_no_part_of_an_address_is_edited(word):
    assert editable_pieces(word) == ()


@pytest.mark.parametrize("noise", [ARTIFICIAL, MIXED], ids=["artificial", "mixed"])
def test_a_fifth_of_all_words_is_misspelt_even_if_half_of_them_cannot_be(noise):
    half = "the 12 mill 1,250 and — which 10:30 " * 10
    labels = [label for sample in noised(noise, [half] * 60, 3) for label in _labels(sample)]
    assert within(sum(labels) / len(labels), 0.2, len(labels))
    assert not any(labels[1::2])


def _labels(sample: Sample) -> list[int]:
    return word_labels(sample.text, sample.target)


def test_a_fifth_of_the_errors_of_mixed_noise_is_artificial():
    errors = [pair for sample in noised(MIXED, TEXTS * 40, 3) for pair in _errors(sample)]
    artificial = sum(not _is_listed(*pair) for pair in errors)
    # An edit of letters may give a listed misspelling: about one in a hundred, with these words.
    assert 0.19 < artificial / len(errors) < 0.22


def _errors(sample: Sample) -> list[tuple[str, str]]:
    pairs = zip(sample.target.split(), sample.text.split(), strict=True)
    return [(word, made) for word, made in pairs if word != made]


def _is_listed(word: str, made: str) -> bool:
    (a, b), *_ = editable_pieces(word)
    return any(word[:a] + wrong + word[b:] == made for wrong in LISTED.of(word[a:b]))


def test_realistic_errors_are_all_listed():
    errors = [pair for sample in noised(REALISTIC, TEXTS * 10, 3) for pair in _errors(sample)]
    assert errors
    assert all(_is_listed(*pair) for pair in errors)


def test_texts_have_at_least_the_requested_number_of_errors():
    noise = described(MixedNoise(misspellings="listed.json", rate=0.0, at_least=2))
    for sample in noised(noise, [*TEXTS, "one", "1,000"], 1):
        possible = sum(bool(editable_pieces(word)) for word in sample.target.split())
        assert len(_errors(sample)) == min(2, possible)


# ---- white space


def test_white_space_noise_changes_only_white_space():
    for sample in noised(SPACES, TEXTS * 5, 5):
        assert "".join(sample.text.split()) == "".join(sample.target.split())
        assert "  " not in sample.text
        assert sample.text == sample.text.strip()


def test_a_tenth_of_texts_has_no_spaces_and_a_tenth_has_spaces_everywhere():
    samples = list(noised(SPACES, TEXTS * 100, 5))
    none = sum(" " not in sample.text for sample in samples)
    every = sum(" ".join("".join(sample.target.split())) == sample.text for sample in samples)
    assert within(none / len(samples), 0.1, len(samples))
    assert within(every / len(samples), 0.1, len(samples))


def test_spaces_are_deleted_and_inserted_with_their_probabilities():
    text = "abcde " * 5000
    (fewer,) = noised(noise_of(WhitespaceNoise(none=0, every=0, insert=0)), [text], 1)
    (more,) = noised(noise_of(WhitespaceNoise(none=0, every=0, delete=0)), [text], 1)
    assert within(fewer.text.count(" ") / 4999, 0.5, 4999)
    assert within((more.text.count(" ") - 4999) / 20000, 0.1, 20000)


# ---- parts of texts


def substring(most: int) -> Noise:
    return noise_of(SubstringNoise(max_characters=most))


@given(texts=st.lists(words, min_size=1), limit=st.integers(12, 40), seed=st.integers(0, 2**32))
def test_substring_has_whole_words_within_the_limit(texts, limit, seed):
    text = " ".join(texts)
    sample = substring(limit)(Sample.of(text), np.random.default_rng(seed))
    assert sample.text == sample.target
    assert len(sample.text) <= limit
    assert f" {sample.text} " in f" {text} "
    if len(text) > limit:
        assert len(sample.text) > limit - 13, "a longer part would have fitted"


@pytest.mark.parametrize(
    "text, most, parts",
    [
        ("a b c d e f g", 5, {"a b c", "b c d", "c d e", "d e f", "e f g"}),
        ("abcdefgh ij", 3, {"ij"}),
        ("abcde fghi", 3, {"fghi"}),  # the shortest word, because all are too long
    ],
)
def test_substring_can_begin_at_any_word_that_is_not_too_long(text, most, parts):
    assert {sample.text for sample in noised(substring(most), [text] * 100, 1)} == parts


@given(seed=st.integers(0, 2**32))
def test_substrings_of_text_target_and_clean_text_match(seed):
    for sample in noised(CHAIN, TEXTS, seed):
        assert len(sample.text) <= 60
        assert "".join(sample.text.split()) == "".join(sample.target.split())
        assert sample.clean is not None
        assert sample.clean in TEXTS or any(f" {sample.clean} " in f" {text} " for text in TEXTS)
        assert len(sample.clean.split()) == len(sample.target.split())


def test_the_target_stays_clean_without_replace():
    noise = ChainedNoise(steps=(ArtificialNoise(), WhitespaceNoise(), SubstringNoise(max_characters=40)))
    samples = list(noised(noise_of(noise), TEXTS, 4))
    assert all(any(f" {each.target} " in f" {text} " for text in TEXTS) for each in samples)
    assert any("".join(each.text.split()) != "".join(each.target.split()) for each in samples)


# ---- choices


def test_a_switch_chooses_by_weight_for_each_sample():
    noise = SwitchNoise(choices=(NoNoise(), ArtificialNoise(rate=0, at_least=1)), weights=(3, 1))
    samples = list(noised(noise_of(noise), ["some words"] * 2000, 8))
    changed = [sample.text != sample.target for sample in samples]
    assert within(sum(changed) / 2000, 0.25, 2000)
    assert len(set(islice(zip(*[iter(changed)] * 8, strict=True), 20))) > 10, "not by batches"


# ---- files


def test_a_file_of_misspellings_is_read_once():
    reads = []
    mixed = MixedNoise(misspellings="m.json")
    other = dataclasses.replace(mixed, rate=0.1)
    steps = ChainedNoise(steps=(mixed, other))
    noise_of(SwitchNoise(choices=(mixed, steps)), lambda path: reads.append(path) or Misspellings({}))
    assert reads == [Path("m.json")]
