"""Windows of texts that are too long."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from toolkit.workloads.spelling.inference.chunks import Window, windows_of

#: Tokens of each word of a text.
lengths = st.lists(st.integers(1, 12), max_size=30)
sizes = st.integers(1, 40)


def starts_of(tokens: list[int]) -> list[int]:
    return [0, *itertools.accumulate(tokens)][: len(tokens)]


@given(lengths, sizes)
def test_cores_cover_the_whole_text_and_windows_fit(tokens: list[int], size: int) -> None:
    length, most = sum(tokens), size // 8
    windows = windows_of(length, starts_of(tokens), size)
    assert [place for each in windows for place in range(each.first, each.last)] == list(range(length))
    for each in windows:
        assert 0 <= each.begin <= each.first < each.last <= each.end <= length
        assert each.end - each.begin <= size
        assert each.first - each.begin <= most or each.begin == 0
        assert each.end - each.last <= most


@given(lengths, sizes)
def test_only_words_that_are_too_long_are_cut(tokens: list[int], size: int) -> None:
    starts = starts_of(tokens)
    for each in windows_of(sum(tokens), starts, size)[:-1]:
        if each.last not in starts:
            word = max(start for start in starts if start < each.last)
            assert tokens[starts.index(word)] > size - 2 * (size // 8)


def test_a_text_that_fits_is_one_window_and_an_empty_text_has_none() -> None:
    assert windows_of(8, [0, 5], 8) == [Window(begin=0, first=0, last=8, end=8)]
    assert windows_of(0, [], 8) == []


def test_context_is_an_eighth_on_each_side() -> None:
    assert windows_of(2000, list(range(2000)), 512)[1] == Window(begin=384, first=448, last=832, end=896)
