"""The numbers of a row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from slurm.status import numbers
from toolkit.run.attempts.records import AttemptRecord
from toolkit.run.records.headline import finite, flat_metrics

START = AttemptRecord(
    attempt=1, time_start=1000.0, first_step_after_start_s=10.0, first_step=0, device="cuda", world_size=4
)


def progress(step: int, time: float) -> dict[str, Any]:
    return {"step": step, "total_steps": 100, "time": time}


def test_eta_assumes_the_pace_of_the_steps_so_far() -> None:
    # 20 steps after the first in 40 s.
    assert numbers.eta_s([START], progress(21, 1050.0), now=1050.0) == pytest.approx(79 * 2.0)


def test_eta_subtracts_the_time_since_the_last_progress() -> None:
    assert numbers.eta_s([START], progress(21, 1050.0), now=1060.0) == pytest.approx(79 * 2.0 - 10)
    assert numbers.eta_s([START], progress(21, 1050.0), now=9999.0) == 0.0


def test_eta_of_a_second_training_has_the_pace_of_its_own_steps() -> None:
    of_second = {"second_attempt": 1, "second_step": 1, "second_time": 9010.0}
    second = progress(21, 9050.0) | of_second
    ended = replace(START, time_end=9055.0, last_step=21)
    for attempts in ([START], [ended], [ended, AttemptRecord(attempt=2, time_start=9060.0)]):
        assert numbers.eta_s(attempts, second, now=9050.0) == pytest.approx(79 * 2.0)
    later = replace(START, attempt=2, time_start=9060.0, first_step=21)
    # The 20 steps of the second training took 45 s until the end of its attempt.
    assert numbers.eta_s([ended, later], progress(22, 9075.0) | of_second, 9075.0) == pytest.approx(78 * 2.25)
    assert numbers.eta_s([ended, later], progress(42, 9110.0) | of_second, 9110.0) == pytest.approx(58 * 2.0)


def test_eta_of_a_second_training_without_two_steps_is_none() -> None:
    second = progress(21, 9010.0) | {"second_attempt": 1, "second_step": 21, "second_time": 9010.0}
    assert numbers.eta_s([START], second, now=9010.0) is None


def test_eta_of_an_attempt_without_steps_uses_the_pace_of_the_one_before() -> None:
    first = replace(START, time_end=1050.0, last_step=21)
    second = AttemptRecord(attempt=2, time_start=2000.0)
    assert numbers.eta_s([first, second], progress(21, 1050.0), now=2000.0) == pytest.approx(79 * 2.0)


@pytest.mark.parametrize(
    "starts, document",
    [
        ([], progress(5, 1.0)),
        ([START], {}),
        ([START], progress(1, 1010.0)),
        ([AttemptRecord(attempt=1)], progress(5, 1.0)),
    ],
)
def test_eta_is_none_without_a_known_pace(starts: list[Any], document: dict[str, Any]) -> None:
    assert numbers.eta_s(starts, document, now=2000.0) is None


def test_gpu_hours_are_those_of_all_starts() -> None:
    starts = [replace(START, time_end=4600.0), replace(START, time_start=8200.0, world_size=2)]
    assert numbers.gpu_hours(starts, seen=11800.0) == pytest.approx(4 + 2)


def test_gpu_hours_of_a_killed_attempt_end_with_the_next_one() -> None:
    assert numbers.gpu_hours([START, replace(START, time_start=4600.0)], seen=8200.0) == pytest.approx(8)


def test_without_a_gpu_there_are_no_gpu_hours() -> None:
    assert numbers.gpu_hours([replace(START, device="cpu")], seen=9999.0) is None
    assert numbers.gpu_hours([], seen=9999.0) is None


def test_only_finite_numbers_are_metrics() -> None:
    odd = {"a": 1, "b": "x", "c": float("nan"), "d": True, "e": None, "test": {"f1": 0.5, "g": []}}
    assert finite(flat_metrics({"metrics": odd})) == {"a": 1, "test_f1": 0.5}
    assert flat_metrics({"metrics": [1]}) == {}


@pytest.mark.parametrize(
    "step, total, expected",
    [(0, None, None), (5, 10, 50.0), (1, 3, 33.3), (19_999, 20_000, 99.9), (11, 10, 100.0)],
)
def test_a_percentage_needs_a_total_and_is_100_only_at_the_end(
    step: int, total: int | None, expected: float | None
) -> None:
    assert numbers.percent(step, total) == expected
