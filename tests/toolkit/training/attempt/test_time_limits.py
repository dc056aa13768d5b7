"""A rank that is silent counts as hanging, unless what it does may take that long."""

from __future__ import annotations

import pytest

from toolkit.config.schema import Train
from toolkit.reliability.watchdog import period_s
from toolkit.run.phases import Phase
from toolkit.training.attempt.time_limits import hang_limit_s, lock_patience_s


@pytest.mark.parametrize("phase", [Phase.DATA, Phase.BACKWARD, Phase.EVALUATION])
def test_hang_limit_is_below_the_collective_timeout(phase: Phase) -> None:
    assert hang_limit_s(Train(hang_timeout_s=300.0, collective_timeout_s=600.0), phase, 90.0) == 300.0
    assert hang_limit_s(Train(hang_timeout_s=300.0, collective_timeout_s=100.0), phase, 90.0) == 75.0


def test_hang_limit_of_a_save_is_ten_times_its_usual_duration() -> None:
    train = Train(hang_timeout_s=300.0)
    assert hang_limit_s(train, Phase.SAVE, 1.0) == 300.0
    assert hang_limit_s(train, Phase.SAVE, 90.0) == 900.0


def test_hang_limit_of_a_report_is_longer_than_that_of_a_step() -> None:
    assert hang_limit_s(Train(hang_timeout_s=5.0), Phase.REPORT, 0.0) > 5.0


@pytest.mark.parametrize("hang_timeout_s", [0.5, 30.0, 3600.0])
def test_lock_patience_covers_at_least_three_heartbeats(hang_timeout_s: float) -> None:
    assert lock_patience_s(Train(hang_timeout_s=hang_timeout_s)) >= 3 * period_s(hang_timeout_s)


def test_lock_patience_is_a_minute_for_a_long_hang_timeout() -> None:
    assert lock_patience_s(Train(hang_timeout_s=3600.0)) == 60.0
