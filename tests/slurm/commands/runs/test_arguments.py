"""Periods, dates and states as words of a command line."""

from __future__ import annotations

from argparse import ArgumentTypeError
from datetime import datetime

import pytest

from slurm.commands.runs import arguments
from slurm.commands.runs.arguments import moment, states


@pytest.mark.parametrize(
    "text, expected",
    [
        ("2d", 1e6 - 172800),
        ("90m", 1e6 - 5400),
        ("1.5h", 1e6 - 5400),
        ("30 s", 1e6 - 30),
        ("1w", 1e6 - 604800),
    ],
)
def test_a_period_counts_back_from_now(monkeypatch: pytest.MonkeyPatch, text: str, expected: float) -> None:
    monkeypatch.setattr(arguments, "time", lambda: 1e6)
    assert moment(text) == expected


def test_date_is_in_local_time() -> None:
    assert moment("2026-03-01T14:00") == datetime(2026, 3, 1, 14).timestamp()
    assert moment("2026-03-01") == datetime(2026, 3, 1).timestamp()


def test_unknown_state_is_refused_with_the_known_ones() -> None:
    assert states("running, failed") == {"running", "failed"}
    with pytest.raises(ArgumentTypeError, match=r"'done' is not one of pending, running"):
        states("running,done")
