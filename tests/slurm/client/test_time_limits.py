"""Time limits are read as sbatch reads them; the expected values are those of a real sbatch (22.05)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm.client.quantities import format_minutes, parse_minutes
from toolkit.errors import UserError


@pytest.mark.parametrize(
    "text, minutes",
    [
        ("1", 1),
        ("90", 90),
        ("0:30", 1),
        ("1:30", 2),
        ("10:30", 11),
        ("90:90", 92),
        ("1:30:00", 90),
        ("1:00:01", 61),
        ("25:61:61", 1563),
        ("1-0", 1440),
        ("1-25", 2940),
        ("1-1:30", 1530),
        ("1-00:00:00", 1440),
        ("1-1:30:01", 1531),
    ],
)
def test_a_time_limit_counts_in_whole_minutes_rounded_up(text: str, minutes: int) -> None:
    assert parse_minutes(text) == minutes


@pytest.mark.parametrize("text", ["UNLIMITED", "infinite", "-1", "0", "0:0", "0:00:00"])
def test_unlimited_time_is_none(text: str) -> None:
    assert parse_minutes(text) is None


@pytest.mark.parametrize(
    "text",
    ["", ":5", "5:", "1-", "1-:30", "5m", "1 ", " 1", "1.5", "+5", "1:2:3:4", "1-1-1", "2h", "-2", "١"],
)
def test_invalid_time_limit_is_refused_with_the_valid_notations(text: str) -> None:
    with pytest.raises(UserError, match="days-hours:minutes") as refusal:
        parse_minutes(text)
    assert repr(text) in str(refusal.value)


@given(st.none() | st.integers(1, 10**6))
def test_a_formatted_time_limit_reads_back(minutes: int | None) -> None:
    assert parse_minutes(format_minutes(minutes)) == minutes


def test_a_time_limit_is_written_as_slurm_writes_it() -> None:
    found = [format_minutes(m) for m in (1, 90, 1440, 1531)]
    assert found == ["00:01:00", "01:30:00", "1-00:00:00", "1-01:31:00"]
