"""Passages of long texts, and merging their corrections."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.workloads.spelling.inference.chunks import (
    Passage,
    Window,
    passages_of_characters,
    passages_of_words,
    windows_of,
)
from toolkit.workloads.spelling.inference.merge_chunks import (
    joined_corrections,
    joined_words,
    only_marked,
    only_marked_words,
)

_WORDS = st.lists(st.text("abcé", min_size=1, max_size=30), min_size=1, max_size=60)
_TEXT = st.text("ab ", min_size=1, max_size=200).map(str.split).map(" ".join).filter(bool)


def passages(words: list[str], size: int) -> list[Passage]:
    """Return passages, with one token for each character."""
    return list(passages_of_words(words, size, len))


def test_context_is_an_eighth_on_each_side() -> None:
    assert windows_of(2000, list(range(2000)), 512)[1] == Window(begin=384, first=448, last=832, end=896)


@given(words=_WORDS, size=st.integers(8, 64))
def test_each_word_is_in_the_core_of_one_passage_and_passages_fit(words: list[str], size: int) -> None:
    found = passages(words, size)
    assert all(sum(map(len, passage.text.split())) <= size for passage in found)
    cores = [
        passage.kept or passage.text.split()[place] for passage in found for place in range(*passage.words)
    ]
    assert cores == words


@given(words=_WORDS, size=st.integers(8, 64))
def test_unchanged_passages_give_the_text(words: list[str], size: int) -> None:
    text = " ".join(words)
    for found in (passages(words, size), list(passages_of_characters(text, size))):
        assert joined_corrections(found, [passage.text for passage in found]) == text


@given(words=_WORDS, size=st.integers(8, 64))
def test_each_changed_word_occurs_once(words: list[str], size: int) -> None:
    found = passages(words, size)
    made = [passage.text.replace("a", "xy") for passage in found]
    kept = {passage.kept for passage in found}
    expected = " ".join(word if word in kept else word.replace("a", "xy") for word in words)
    assert joined_corrections(found, made) == expected


@given(text=_TEXT)
def test_repaired_passages_give_the_repaired_text(text: str) -> None:
    # Puts a space before each a, and removes all others.
    def repair(text: str) -> str:
        return text.replace(" ", "").replace("a", " a").strip()

    found = list(passages_of_characters(text, 24))
    assert joined_corrections(found, [repair(passage.text) for passage in found]) == repair(text)


@given(text=_TEXT, draw=st.data())
def test_repaired_passages_neither_lose_nor_repeat_letters(text: str, draw: st.DataObject) -> None:
    found = list(passages_of_characters(text, 24))
    spaces = st.sampled_from(["", " "])
    made = [
        "".join(letter + draw.draw(spaces) for letter in passage.text.replace(" ", "")) for passage in found
    ]
    assert joined_corrections(found, made).replace(" ", "") == text.replace(" ", "")


def test_a_text_that_fits_becomes_its_correction() -> None:
    assert joined_corrections(passages(["teh", "cat"], 6), ["the  cat "]) == "the cat"
    assert joined_corrections([], []) == ""


@pytest.mark.parametrize(
    "text, made, labels, expected",
    [
        ("teh cta", "the cat", [1, 0], "the cta"),
        ("teh cta", "the cat", [0, 1], "teh cat"),
        ("teh alot cta", "the a lot cat", [0, 1, 0], "teh a lot cta"),
        ("teh alot cta", "the a lot cat", [1, 0, 1], "the alot cat"),
        ("teh al so cta", "the also cat", [0, 0, 1, 0], "teh also cta"),
        ("teh al so cta", "the also cat", [0, 1, 0, 0], "teh also cta"),
        ("teh al so cta", "the also cat", [1, 0, 0, 1], "the al so cat"),
        ("the stoen river", "tow river", [0, 1, 0], "the ow river"),
        ("teh  cta", "the cat", [0], "teh cta"),
        ("teh cta", "the cat", [1], "the cat"),
        # A marked word without a correction stays.
        ("ab xy river", "ab river", [0, 1, 0], "ab xy river"),
        ("teh xy river", "", [1, 1, 0], "teh xy river"),
        ("", "", [], ""),
    ],
)
def test_only_marked_words_are_corrected(text: str, made: str, labels: list[int], expected: str) -> None:
    assert only_marked(text, made, labels) == expected


_ANY = st.text("abc ", max_size=12)


@given(words=_WORDS, size=st.integers(8, 64), data=st.data())
def test_each_word_that_was_written_separately_occurs_once(
    words: list[str], size: int, data: st.DataObject
) -> None:
    found = passages(words, size)
    # Words are numbered by their passage and place, so that words of the context would be noticed.
    made = [
        " ".join(f"{data.draw(st.sampled_from('abc'))}{number}-{place}" for place in range(count))
        for number, passage in enumerate(found)
        for count in [len(passage.text.split())]
    ]
    expected = [
        passage.kept or made[number].split()[place]
        for number, passage in enumerate(found)
        for place in range(*passage.words)
    ]
    assert joined_words(found, made).split() == expected
    assert len(expected) == len(words)


@given(words=_WORDS, size=st.integers(8, 64), data=st.data())
def test_no_passage_is_lost_for_any_correction(words: list[str], size: int, data: st.DataObject) -> None:
    text = " ".join(words)
    for found in (passages(words, size), list(passages_of_characters(text, size))):
        made = [data.draw(_ANY.filter(str.strip)) for _ in found]
        left = joined_corrections(found, made).replace(" ", "")
        cores = [passage for passage in found if passage.text[slice(*passage.core)].strip()]
        assert len(left) >= len(cores)


@given(words=_WORDS, made=_ANY, data=st.data())
def test_unmarked_words_are_not_lost_beside_marked_words(
    words: list[str], made: str, data: st.DataObject
) -> None:
    labels = data.draw(st.lists(st.integers(0, 1), min_size=len(words), max_size=len(words)))
    if all(labels):
        labels[0] = 0
    # Marked words may be merged with others.
    found = only_marked(" ".join(words), made, labels)
    assert all(word in found for word, own in zip(words, labels, strict=True) if not own)


def test_words_that_were_written_separately_are_matched_by_place() -> None:
    assert only_marked_words("teh cta sat", "b the cat", [0, 1, 0]) == "teh the sat"
    assert only_marked_words("teh cta", "the cat", [1]) == "the cat"
    assert only_marked_words("teh  cta", "the cat", [0]) == "teh cta"
