"""A job that is too short for the warning that was asked for is told so."""

from __future__ import annotations

import pytest

from slurm.submission.checks.early_checks import check_before_queue
from tests.slurm.support.user import User


@pytest.mark.parametrize(
    "overrides, words",
    [
        (["resources.time=2", "resources.signal_s=60"], ["resources.signal_s", "20 s", "resources.time"]),
        (["resources.time=60", "resources.signal_s=60"], []),
        # This is the default, so no warning is due.
        (["resources.time=2"], []),
    ],
)
def test_warning_later_than_requested_is_reported(user: User, overrides: list[str], words: list[str]) -> None:
    warnings = check_before_queue(user.experiment(*overrides), None, "slurm")
    said = [line for line in warnings if "signal_s" in line]
    assert len(said) == bool(words)
    assert all(word in said[0] for word in words)
