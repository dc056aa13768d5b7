"""Windows over texts that are too long."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from toolkit.workloads.spelling.inference.chunks import Window, windows_of, word_starts
from toolkit.workloads.spelling.inference.merge_chunks import joined

lengths = st.lists(st.integers(1, 12), max_size=30)
sizes = st.integers(1, 40)
words = st.lists(st.text("abcd", min_size=1, max_size=9), max_size=25)


def starts_of(tokens: list[int]) -> list[int]:
    return [0, *itertools.accumulate(tokens)][: len(tokens)]


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[int], int, int | None]:
    """Tokens of each word, size of a window, context."""
    size = draw(sizes)
    context = draw(st.none() | st.integers(0, (size - 1) // 2))
    return draw(lengths), size, context


@given(cases())
def test_cores_are_the_text_and_windows_fit(case: tuple[list[int], int, int | None]) -> None:
    tokens, size, context = case
    length, most = sum(tokens), size // 8 if context is None else context
    windows = windows_of(length, starts_of(tokens), size, context)
    assert [place for each in windows for place in range(each.first, each.last)] == list(range(length))
    for each in windows:
        assert 0 <= each.begin <= each.first < each.last <= each.end <= length
        assert each.end - each.begin <= size
        assert each.first - each.begin <= most or each.begin == 0
        assert each.end - each.last <= most


@given(cases())
def test_words_are_cut_only_where_they_are_too_long(case: tuple[list[int], int, int | None]) -> None:
    tokens, size, context = case
    starts = starts_of(tokens)
    most = size // 8 if context is None else context
    for each in windows_of(sum(tokens), starts, size, context)[:-1]:
        if each.last not in starts:
            word = max(start for start in starts if start < each.last)
            assert tokens[starts.index(word)] > size - 2 * most


@given(words, sizes)
def test_joining_the_texts_of_the_cores_gives_the_text(parts: list[str], size: int) -> None:
    text = " ".join(parts)
    windows = windows_of(len(text), word_starts(text), size, 0)
    cores = [text[each.first : each.last] for each in windows]
    # White space stands before the core, or at its beginning.
    apart = [any(map(str.isspace, text[max(at.first - 1, 0) : at.first + 1])) for at in windows]
    assert joined(cores, apart) == text


def test_a_text_that_fits_is_one_window_and_an_empty_one_none() -> None:
    assert windows_of(8, [0, 5], 8) == [Window(begin=0, first=0, last=8, end=8)]
    assert windows_of(0, [], 8) == []


def test_context_is_an_eighth_on_each_side() -> None:
    inner = windows_of(1000, list(range(1000)), 512)[1]
    assert inner.first - inner.begin == 64
    assert windows_of(2000, list(range(2000)), 512)[1] == Window(begin=384, first=448, last=832, end=896)
