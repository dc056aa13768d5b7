"""A rank that is silent counts as hanging, unless what it does may take that long."""

from __future__ import annotations

import pytest

from toolkit.config.schema import Train
from toolkit.reliability.watchdog import period_s
from toolkit.run.phases import Phase
from toolkit.training.attempt.time_limits import hang_limit_s, lock_patience_s


@pytest.mark.parametrize("phase", [Phase.DATA, Phase.BACKWARD, Phase.EVALUATION])
def test_a_hang_is_found_before_a_collective_times_out(phase: Phase) -> None:
    assert hang_limit_s(Train(hang_timeout_s=300.0, collective_timeout_s=600.0), phase, 90.0) == 300.0
    assert hang_limit_s(Train(hang_timeout_s=300.0, collective_timeout_s=100.0), phase, 90.0) == 75.0


def test_a_save_may_take_ten_times_as_long_as_saves_do() -> None:
    train = Train(hang_timeout_s=300.0)
    assert hang_limit_s(train, Phase.SAVE, 1.0) == 300.0
    assert hang_limit_s(train, Phase.SAVE, 90.0) == 900.0


def test_a_report_may_take_longer_than_a_step() -> None:
    assert hang_limit_s(Train(hang_timeout_s=5.0), Phase.REPORT, 0.0) > 5.0


@pytest.mark.parametrize("hang_timeout_s", [0.5, 30.0, 3600.0])
def test_the_holder_of_the_lock_gets_time_for_several_heartbeats(hang_timeout_s: float) -> None:
    assert lock_patience_s(Train(hang_timeout_s=hang_timeout_s)) >= 3 * period_s(hang_timeout_s)


def test_a_lock_is_waited_for_a_minute_where_a_hang_takes_longer_to_be_found() -> None:
    assert lock_patience_s(Train(hang_timeout_s=3600.0)) == 60.0
