"""The window around a mention."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from toolkit.workloads.entity_disambiguation.data.encoding.context import contexts, cut_window
from toolkit.workloads.entity_disambiguation.data.encoding.tokenizer import (
    ENT_END,
    ENT_START,
    MARKERS,
    MarkedTokenizer,
)

counts = st.integers(0, 200)


@given(left=counts, mention=st.integers(1, 50), right=counts, window=counts, room=st.integers(1, 150))
def test_a_window_is_as_full_as_possible_and_the_mention_takes_priority(
    left: int, mention: int, right: int, window: int, room: int
) -> None:
    a, own, b = cut_window(left, mention, right, window, room)
    assert own == min(mention, room)
    assert 0 <= a <= left
    assert 0 <= b <= right
    assert a + b == min(left + right, window, room - own)


@given(left=st.integers(100, 200), right=st.integers(100, 200), window=st.integers(0, 100))
def test_two_long_sides_share_the_window(left: int, right: int, window: int) -> None:
    a, _, b = cut_window(left, 1, right, window, 1000)
    assert 0 <= b - a <= 1


def test_a_short_side_leaves_its_tokens_to_the_other() -> None:
    assert cut_window(2, 1, 100, 10, 100) == (2, 1, 8)
    assert cut_window(100, 1, 3, 10, 100) == (7, 1, 3)
    assert cut_window(0, 1, 100, 10, 100) == (0, 1, 10)


def test_markers_and_window_surround_the_mention(tokenizer: MarkedTokenizer) -> None:
    text = "the film the film a the film"
    (sample,) = contexts([text], [(18, 19)], tokenizer, window=4, max_tokens=40)
    the, film, a, start, end = (
        *(int(tokenizer.encode([word])[0][0]) for word in ("the", "film", "a")),
        tokenizer.markers[ENT_START],
        tokenizer.markers[ENT_END],
    )
    inner = [the, film, start, a, end, the, film]
    assert sample.tokens.tolist() == [*tokenizer.before, *inner, *tokenizer.after]
    assert sample.tokens[sample.first : sample.last].tolist() == [a]


def test_a_sample_is_at_most_max_tokens_long_and_keeps_its_mention(tokenizer: MarkedTokenizer) -> None:
    text = "x" * 30 + " film " + "y" * 30
    (sample,) = contexts([text], [(31, 35)], tokenizer, window=64, max_tokens=10)
    assert len(sample.tokens) == 10
    assert sample.tokens[sample.first : sample.last].tolist() == tokenizer.encode(["film"])[0].tolist()


def test_mention_at_an_end_of_a_text_has_context_on_one_side(tokenizer: MarkedTokenizer) -> None:
    first, last = contexts(["film the"] * 2, [(0, 4), (5, 8)], tokenizer, window=8, max_tokens=20)
    assert first.first == len(tokenizer.before) + 1
    assert last.tokens[last.last :].tolist() == [tokenizer.markers[ENT_END], *tokenizer.after]


def test_the_name_of_a_marker_in_a_text_is_ordinary_text(tokenizer: MarkedTokenizer) -> None:
    (numbers,) = tokenizer.encode(["the [ent_start] film"])
    assert not set(numbers.tolist()) & set(tokenizer.markers.values())
    assert len(tokenizer.markers) == len(MARKERS) == len(tokenizer.like)
    assert sorted(tokenizer.markers.values())[-1] == tokenizer.size - 1
