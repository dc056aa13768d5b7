"""Texts as characters: the words of the repaired text, and the repairs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.toolkit.workloads.spelling.data.samples.conftest import Make, row
from tests.toolkit.workloads.spelling.spelling_files import WORDS, write_pairs
from toolkit.workloads.spelling.config.noise import (
    ArtificialNoise,
    ChainedNoise,
    NoNoise,
    ReplaceNoise,
    SaveNoise,
    SubstringNoise,
    WhitespaceNoise,
)
from toolkit.workloads.spelling.data.samples import layout
from toolkit.workloads.spelling.data.samples.prepared import SpellingSet, prepare
from toolkit.workloads.spelling.data.texts.repairs import DELETE, INSERT, KEEP, repaired
from toolkit.workloads.spelling.data.texts.words import pieces_of
from toolkit.workloads.spelling.tokenizers.make_tokenizer import characters, save

Made = Callable[..., SpellingSet]

SPACES = ChainedNoise(steps=(WhitespaceNoise(), SubstringNoise(max_characters=40)))
_TWO_TARGETS = (SaveNoise(), ReplaceNoise())
PLUS = ChainedNoise(steps=(ArtificialNoise(rate=0.3), *_TWO_TARGETS, *SPACES.steps))


@pytest.fixture
def made(make: Make, tmp_path: Path) -> Made:
    """Prepares the texts as characters."""
    save(characters(), tmp_path / "characters.json")

    def prepared(**settings: Any) -> SpellingSet:
        return prepare(make(tokenizer_path=str(tmp_path / "characters.json"), **settings))

    return prepared


def text_of(found: SpellingSet, index: int, split: str = "train") -> str:
    return found.split(split).origins(np.array([index]))[index].text


def test_pieces_and_words_are_those_of_the_repaired_text(made: Made) -> None:
    found = made(noise=SPACES)
    for index in range(20):
        text = text_of(found, index)
        target = repaired(text, row(found, layout.REPAIRS, index)[1:-1])
        pieces = np.array(row(found, layout.PIECES, index))
        # Each character is a token. Spaces have no piece, and neither have the two special tokens.
        assert (pieces == layout.NO_PIECE).tolist() == [character == " " for character in f" {text} "]
        read = "".join(character for character in text if character != " ")
        of_character = pieces[pieces != layout.NO_PIECE]
        cut = ["".join(c for c, own in zip(read, of_character, strict=True) if own == piece)
               for piece in range(of_character.max() + 1)]  # fmt: skip
        wanted = [(piece.text, word) for word, each in enumerate(target.split()) for piece in pieces_of(each)]
        assert list(zip(cut, row(found, layout.WORDS, index), strict=True)) == wanted
        assert not any(row(found, layout.LABELS, index))


def test_labels_compare_the_repaired_words_with_the_clean_words(made: Made) -> None:
    found, other = made(noise=PLUS), made(noise=ChainedNoise(steps=(*PLUS.steps[:1], *PLUS.steps[3:])))
    errors = 0
    for index in range(20):
        text = text_of(found, index)
        words = repaired(text, row(found, layout.REPAIRS, index)[1:-1]).split()
        labels = row(found, layout.LABELS, index)
        assert len(words) == len(labels)
        errors += sum(labels)
        for word, label in zip(words, labels, strict=True):
            if word.strip(",") in WORDS:
                assert not label
    assert errors
    # Labels compare with the clean text also without the noises save and replace.
    for name in (layout.LABELS, layout.REPAIRS, layout.TOKENS):
        assert row(found, name, 3) == row(other, name, 3)


@pytest.mark.parametrize(
    "text, gold, repairs, labels",
    [
        ("th ecat", "the cat", [KEEP, KEEP, DELETE, KEEP, INSERT, KEEP, KEEP], [0, 0]),
        ("teh cat", "the cat", [KEEP] * 7, [1, 0]),
        ("tehcat", "the cat", [layout.UNKNOWN] * 6, [layout.UNKNOWN]),
        ("th ecat", "0 1", [layout.UNKNOWN] * 7, [0, 1]),
    ],
)
def test_known_repairs_and_labels_are_derived_from_files(
    made: Made, tmp_path: Path, text: str, gold: str, repairs: list[int], labels: list[int]
) -> None:
    folder = write_pairs(tmp_path / "benchmark", [text], [gold])
    found = made(noise=NoNoise(), test=(str(folder),))
    assert row(found, layout.REPAIRS, 0, "test") == [layout.UNKNOWN, *repairs, layout.UNKNOWN]
    assert row(found, layout.LABELS, 0, "test") == labels


@pytest.mark.parametrize("gold, tokens", [("0 1", 0), ("a b", 2), ("a b c", 3)])
def test_labels_give_no_tokens_to_write(
    made: Made, make: Make, tmp_path: Path, gold: str, tokens: int
) -> None:
    write_pairs(tmp_path, ["a b"], [gold])
    found = made(test=(str(tmp_path),), output_tokenizer_path=make().tokenizer_path)
    words = row(found, layout.OUTPUT_WORDS, 0, "test")
    assert len({*words} - {-1}) == tokens


def test_sets_of_other_tokenizers_have_no_repairs(make: Make) -> None:
    assert row(prepare(make()), layout.REPAIRS, 0) == [-1]
