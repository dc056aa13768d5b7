"""Numbers become characters of the right number, least and greatest at the ends of the scale."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from slurm.runs.watching.drawing import bar, sparkline, timeline
from toolkit.run.attempts.goodput import Span

FINITE = st.floats(-1e9, 1e9)


def test_curve_is_scaled_from_minimum_to_maximum() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7], 8) == "▁▂▃▄▅▆▇█"
    assert sparkline([7, 0], 10) == "█▁"


def test_constant_curve_is_flat() -> None:
    assert sparkline([3.0, 3.0, 3.0], 5) == "▁▁▁"
    assert sparkline([0.0, 5e-324], 5) == "▁█"


def test_curve_can_be_scaled_to_a_given_maximum() -> None:
    assert sparkline([0.0, 50.0, 100.0, 150.0], 4, top=100.0) == "▁▅██"


def test_values_share_characters_in_a_narrow_curve() -> None:
    assert sparkline([0, 0, 0, 9, 9, 9], 2) == "▁█"
    assert sparkline([], 5) == sparkline([1.0], 0) == ""


@given(st.lists(FINITE, min_size=1, max_size=300), st.integers(1, 100))
def test_curve_is_as_long_as_its_values_but_at_most_its_width(values: list[float], width: int) -> None:
    assert len(sparkline(values, width)) == min(width, len(values))


def test_bar_is_clipped_to_its_width() -> None:
    assert [bar(share, 4).plain for share in (-1.0, 0.0, 0.5, 1.0, 2.0)] == [
        "────", "────", "━━──", "━━━━", "━━━━"
    ]  # fmt: skip


def test_each_character_shows_the_longest_span_in_it() -> None:
    line = timeline(
        [
            Span(kind="waiting", begin=0.0, end=20.0),
            Span(kind="starting", begin=20.0, end=30.0),
            Span(kind="training", begin=30.0, end=74.0),
            Span(kind="repeated", begin=74.0, end=100.0),
        ],
        saves=[45.0],
        width=10,
    )
    assert line.plain == "··▒█◆██▚▚▚"


def test_save_outside_the_timeline_is_left_out() -> None:
    line = timeline([Span(kind="training", begin=10.0, end=20.0)], saves=[5.0, 20.0, 25.0], width=4)
    assert line.plain == "███◆"


SPAN_LENGTHS = st.lists(st.floats(0.001, 1e6), min_size=1, max_size=30)


@given(SPAN_LENGTHS, st.integers(1, 200))
def test_timeline_fills_its_width(lengths: list[float], width: int) -> None:
    begin, spans = 1e9, []
    for length in lengths:
        spans.append(Span(kind="training", begin=begin, end=begin + length))
        begin += length
    assert timeline(spans, [], width).cell_len == width


def test_timeline_without_spans_is_empty() -> None:
    assert timeline([], [1.0], 10).plain == ""
