"""Spans of time and sizes are written in one way in all commands."""

from __future__ import annotations

import pytest

from toolkit.system.output.amounts import duration, size, size_mb


@pytest.mark.parametrize(
    "seconds, text",
    [
        (None, "–"),
        (0.25, "0.2 s"),
        (59.96, "1 min 00 s"),
        (185, "3 min 05 s"),
        (599.4, "9 min 59 s"),
        (599.5, "10 min"),
        (1749, "29 min"),
        (3599.7, "1 h 00 min"),
        (3600 * 5 + 125, "5 h 02 min"),
        (3600 * 40 + 2940, "1 d 16 h"),
        (86400 * 3 + 3600 * 4, "3 d 04 h"),
    ],
)
def test_durations_are_formatted_with_about_three_digits(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    "number, text",
    [
        (0, "0 B"),
        (999, "999 B"),
        (1536, "1.5 kB"),
        (803 << 20, "803 MB"),
        (2 << 30, "2.0 GB"),
        (1 << 50, "1024 TB"),
    ],
)
def test_sizes_have_two_to_four_digits_and_binary_units(number: int, text: str) -> None:
    assert size(number) == text


def test_a_size_in_megabytes_may_be_unknown() -> None:
    assert [size_mb(megabytes) for megabytes in (None, 512, 140 << 10)] == ["–", "512 MB", "140 GB"]
