"""One sweep as several arrays under one throttle."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from slurm.sweeps.splitting import Part, split


@given(
    count=st.integers(1, 5000),
    largest=st.none() | st.integers(1, 1001),
    throttle=st.none() | st.integers(1, 100),
    busy=st.dictionaries(st.sampled_from(["7", "8"]), st.integers(1, 60)),
)
def test_arrays_respect_the_maximum_size_and_the_throttle(
    count: int, largest: int | None, throttle: int | None, busy: dict[str, int]
) -> None:
    parts = split(count, largest, throttle, busy)
    assert sum(part.size for part in parts) == count
    assert all(0 < part.size <= (largest or count) for part in parts)
    if throttle is None:
        assert all(part == Part(size=part.size) for part in parts)
        return
    # Of arrays that follow each other one runs at a time: those that follow none speak for all.
    first = [part for part in parts if part.follows is None]
    assert all(part.throttle == parts[part.follows].throttle for part in parts if part.follows is not None)
    waits = sum(busy.values()) if not all(part.after for part in first) else 0
    assert sum(part.throttle or 0 for part in first) + waits <= throttle
    assert all(part.after in ((), tuple(busy)) for part in first)


def test_the_throttle_is_shared_out_among_arrays_of_equal_size() -> None:
    parts = split(2500, 1001, 50)
    assert [(part.size, part.throttle) for part in parts] == [(834, 17), (833, 17), (833, 16)]


def test_more_arrays_than_the_throttle_allows_follow_each_other() -> None:
    parts = split(7, 2, 2)
    assert [(part.size, part.throttle, part.follows) for part in parts] == [
        (2, 1, None), (2, 1, None), (2, 1, 0), (1, 1, 1),
    ]  # fmt: skip


def test_new_arrays_wait_for_those_that_use_the_whole_throttle() -> None:
    assert split(3, None, 2, {"7": 2}) == [Part(size=3, throttle=2, after=("7",))]
    assert split(3, None, 3, {"7": 2}) == [Part(size=3, throttle=1)]
