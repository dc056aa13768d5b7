"""A history stays short and covers the whole time."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from toolkit.monitoring.usage.sampling import History
from toolkit.monitoring.usage.values import Moment


def history_of(count: int, longest: int) -> list[float]:
    history = History(longest)
    for second in range(count):
        history.add(Moment(time=float(second), rss_mb=1.0, cpu_percent=1.0))
    return [moment.time for moment in history.moments]


def test_a_full_history_drops_every_second_point() -> None:
    assert history_of(4, longest=4) == [0.0, 1.0, 2.0, 3.0]
    assert history_of(5, longest=4) == [0.0, 2.0, 4.0]
    assert history_of(9, longest=4) == [0.0, 4.0, 8.0]


@given(st.integers(1, 3000), st.integers(2, 20))
def test_points_are_evenly_spaced_over_the_whole_time(count: int, longest: int) -> None:
    times = history_of(count, longest)
    gaps = {later - earlier for earlier, later in itertools.pairwise(times)}
    assert len(times) <= longest
    assert times[0] == 0.0
    assert len(gaps) <= 1
    assert count - 1 - times[-1] < max(gaps, default=1.0)
    assert count <= longest or len(times) >= longest // 2
