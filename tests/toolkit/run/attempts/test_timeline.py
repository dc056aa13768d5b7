"""The time line of a run has no gaps from its submission to now."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.run.attempts.goodput import Span, spans
from toolkit.run.attempts.records import AttemptRecord


def start(begin: float, end: float | None = None, first: float | None = 10.0, **facts: Any) -> AttemptRecord:
    """An attempt whose first step was done this many seconds after its begin."""
    return AttemptRecord(attempt=1, time_start=begin, time_end=end, first_step_after_start_s=first, **facts)


def told(
    lines: list[AttemptRecord], now: float, *since: float, **options: Any
) -> list[tuple[str, float, float]]:
    return [(span.kind, span.begin, span.end) for span in spans(lines, since, now, **options)]


def test_a_requeued_run_waits_before_and_between_its_attempts() -> None:
    lines = [
        start(100.0, 150.0, first_step=0, last_step=10, job_id="7", restart=0),
        start(180.0, 250.0, first_step=10, last_step=30, job_id="7", restart=1),
    ]
    assert told(lines, 300.0, 50.0) == [
        ("waiting", 50.0, 100.0),
        ("starting", 100.0, 110.0),
        ("training", 110.0, 150.0),
        ("waiting", 150.0, 180.0),
        ("starting", 180.0, 190.0),
        ("training", 190.0, 250.0),
        ("waiting", 250.0, 300.0),
    ]


def test_a_run_that_has_ended_does_not_wait() -> None:
    assert told([start(100.0, 150.0)], 300.0, is_live=False)[-1] == ("training", 110.0, 150.0)


def test_a_run_that_has_not_begun_waits() -> None:
    assert told([], 90.0, 50.0) == [("waiting", 50.0, 90.0)]
    assert told([], 90.0) == []


def test_an_attempt_without_a_start_time_is_left_out() -> None:
    assert told([AttemptRecord(attempt=1), start(100.0)], 200.0)[0] == ("starting", 100.0, 110.0)


_LENGTHS = st.lists(st.tuples(st.floats(0, 1e4), st.floats(0, 1e4), st.floats(0, 1e4)), max_size=8)


@given(_LENGTHS, st.lists(st.integers(0, 50), min_size=16, max_size=16), st.floats(0, 100))
def test_spans_have_no_gaps_and_never_overlap(
    lengths: list[tuple[float, float, float]], steps: list[int], before: float
) -> None:
    clock, lines = 1000.0, []
    for number, (first, length, pause) in enumerate(lengths):
        numbers = {"first_step": steps[2 * number], "last_step": steps[2 * number + 1]}
        lines.append(start(clock, clock + length, first, **numbers))
        clock += length + pause
    found = spans(lines, [1000.0 - before], clock + 5.0)
    assert all(isinstance(span, Span) and span.begin < span.end for span in found)
    for one, other in itertools.pairwise(found):
        assert one.end == pytest.approx(other.begin)
