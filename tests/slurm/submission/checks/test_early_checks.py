"""Warnings of an experiment before its job waits in the queue."""

from __future__ import annotations

import pytest

from slurm.submission.checks.early_checks import check_before_queue
from tests.slurm.support.user import User


@pytest.mark.parametrize(
    "value, is_named",
    [
        (r"/opt/x/bin:\$PATH", True),
        (r"'\${HOME}/cache'", True),
        ("~/cache", True),
        ("'${oc.env:A_TOKEN}'", False),
        ("'${oc.env:CACHE}'", False),
        ("5$ a~b", False),
    ],
)
def test_variable_of_the_job_with_text_of_a_shell_is_named(
    user: User, value: str, is_named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_TOKEN", "hushed$HOME")
    monkeypatch.setenv("CACHE", "/cache")
    experiment = user.experiment(f"resources.environment.X={value}")
    warnings = [line for line in check_before_queue(experiment, None, "slurm") if "environment.X" in line]
    assert len(warnings) == is_named
    assert "hushed" not in "".join(warnings)
    assert not any("environment.X" in line for line in check_before_queue(experiment, None, "local"))


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
