"""The interval between saves follows from what they cost and from how often a run is interrupted."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.checkpoint.save_interval import (
    FIRST_S,
    LONGEST_S,
    OVERHEAD,
    PRIOR_S,
    SHORTEST_S,
    SaveTimer,
    cost_s,
    interval_s,
    mtbf_s,
)
from toolkit.run.attempts.records import AttemptRecord

HOUR = 3600.0


def test_interval_follows_young_and_daly() -> None:
    """0.09 s of stall and an interruption a day: about two minutes."""
    assert interval_s(0.09, 0.0, 24 * HOUR) == pytest.approx(math.sqrt(2 * 0.09 * 24 * HOUR))


def test_background_writing_counts_as_a_small_share_of_its_time() -> None:
    assert cost_s(0.1, 10.0) == pytest.approx(0.4)


@given(stall=st.floats(0, 1000), write=st.floats(0, 10_000), mtbf=st.floats(1, 1e8, allow_subnormal=False))
def test_interval_bounds_the_cost_of_saves_and_the_load_of_the_disk(
    stall: float, write: float, mtbf: float
) -> None:
    interval = interval_s(stall, write, mtbf)
    assert cost_s(stall, write) <= OVERHEAD * interval * (1 + 1e-9)
    assert interval >= SHORTEST_S
    assert interval >= 2 * write
    # Longer than the bound only where the cost asks for it.
    assert interval <= max(LONGEST_S, cost_s(stall, write) / OVERHEAD, 2 * write)


@given(st.floats(0.001, 10), st.floats(60, 1e7))
def test_interval_grows_with_rarer_interruptions_and_costlier_saves(stall: float, mtbf: float) -> None:
    assert interval_s(stall, 0, 2 * mtbf) >= interval_s(stall, 0, mtbf)
    assert interval_s(2 * stall, 0, mtbf) >= interval_s(stall, 0, mtbf)


def attempt(hours: float | None, why: str | None = None) -> AttemptRecord:
    end = None if hours is None else 1000.0 + hours * HOUR
    return AttemptRecord(attempt=1, time_start=1000.0, time_end=end, why=why)


@pytest.mark.parametrize(
    "attempts, running_h, expected_h",
    [
        pytest.param([], 0, 24, id="nothing known: one a day"),
        pytest.param([], 48, 72, id="a long run without one"),
        pytest.param([attempt(6, "killed")], 0, 15, id="one after six hours"),
        pytest.param([attempt(None)], 0, 12, id="killed at an unknown time"),
        pytest.param([attempt(1, "hang"), attempt(1, "exception")], 0, 26 / 3, id="failures count"),
        pytest.param([attempt(2, "preempted"), attempt(2, "SIGTERM")], 0, 28, id="stops lose nothing"),
        pytest.param([attempt(2, "time_limit"), attempt(1, "finished")], 1, 28, id="nor do ends"),
    ],
)
def test_mean_time_between_interruptions_counts_failures_and_running_time(
    attempts: list[AttemptRecord], running_h: float, expected_h: float
) -> None:
    assert mtbf_s(attempts, running_h * HOUR) == pytest.approx(expected_h * HOUR)


class Time:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 500.0
        self.events: list[dict[str, Any]] = []

    def __call__(self) -> float:
        return self.now

    def note(self, event: str, **facts: Any) -> None:
        self.events.append({"event": event, **facts})

    def clock(self, every_minutes: float | None = None) -> SaveTimer:
        return SaveTimer(every_minutes, self.note, now=self)


def test_saves_are_due_at_the_configured_minutes() -> None:
    time = Time()
    clock = time.clock(2)
    for _ in range(2):
        time.now += 119
        assert not clock.is_due()
        time.now += 1
        assert clock.is_due()
        clock.begun()
        assert not clock.is_due()
        clock.saved(5.0, 100.0, [])
    assert time.events == []


def test_first_save_is_early_and_measures_the_cost_of_a_save() -> None:
    time = Time()
    clock = time.clock()
    time.now += FIRST_S
    assert clock.is_due()
    clock.begun()
    clock.saved(0.5, 2.0, [])
    (event,) = time.events
    expected = interval_s(0.5, 2.0, PRIOR_S + FIRST_S)
    assert event["event"] == "save_interval"
    assert event["seconds"] == pytest.approx(expected, abs=0.1)
    assert event["overhead"] <= OVERHEAD
    time.now += expected - 1
    assert not clock.is_due()
    time.now += 1
    assert clock.is_due()


def test_interval_is_recorded_again_only_after_a_large_change() -> None:
    time = Time()
    clock = time.clock()
    for stall in (0.5, 0.55, 0.5, 0.45):
        clock.saved(stall, 2.0, [])
    assert len(time.events) == 1
    clock.saved(0.5, 2.0, [attempt(0.1, "killed")] * 9)
    assert len(time.events) == 2
    assert time.events[1]["seconds"] < time.events[0]["seconds"] / 1.5


def test_slow_first_save_soon_stops_affecting_the_interval() -> None:
    time = Time()
    clock = time.clock()
    clock.saved(10.0, 1.0, [])
    clock.saved(0.1, 1.0, [])
    clock.saved(0.1, 1.0, [])
    assert clock.seconds == interval_s(0.1, 1.0, PRIOR_S)


@pytest.mark.parametrize("every_minutes", [30, None])
def test_failed_save_is_retried_soon(every_minutes: float | None) -> None:
    time = Time()
    clock = time.clock(every_minutes)
    clock.saved(2.0, 30.0, [])
    clock.begun()
    clock.failed()
    time.now += FIRST_S
    assert clock.is_due()
    clock.begun()
    clock.saved(2.0, 30.0, [])
    time.now += FIRST_S
    assert not clock.is_due()
