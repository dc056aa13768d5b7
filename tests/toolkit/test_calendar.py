"""When things are due depends on the step alone."""

from __future__ import annotations

import itertools
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.toolkit.tiny import tiny
from toolkit.calendar import Calendar


@st.composite
def calendars(draw: st.DrawFn) -> Calendar:
    steps_per_epoch = draw(st.integers(1, 400))
    return Calendar(
        steps_per_epoch=steps_per_epoch,
        total_steps=steps_per_epoch * draw(st.integers(1, 4)),
        log_per_epoch=draw(st.integers(1, 500)),
        eval_per_epoch=draw(st.integers(1, 500)),
        save_every=draw(st.none() | st.integers(1, 50)),
        compare_every=None,
    )


@given(calendar=calendars())
def test_every_epoch_has_as_many_logs_and_evaluations_as_asked_or_as_it_has_steps(calendar: Calendar) -> None:
    for first in range(0, calendar.total_steps, calendar.steps_per_epoch):
        steps = range(first + 1, first + calendar.steps_per_epoch + 1)
        logs = sum(calendar.logs_at(step) for step in steps)
        evaluations = sum(calendar.evaluates_at(step) for step in steps)
        assert logs == min(calendar.log_per_epoch, calendar.steps_per_epoch)
        assert evaluations == min(calendar.eval_per_epoch, calendar.steps_per_epoch)


@given(calendar=calendars())
def test_last_step_of_every_epoch_is_due(calendar: Calendar) -> None:
    for step in range(calendar.steps_per_epoch, calendar.total_steps + 1, calendar.steps_per_epoch):
        assert calendar.logs_at(step)
        assert calendar.evaluates_at(step)
        assert calendar.epoch(step) == step // calendar.steps_per_epoch


@given(calendar=calendars())
def test_dates_are_spread_evenly(calendar: Calendar) -> None:
    due = [step for step in range(1, calendar.total_steps + 1) if calendar.evaluates_at(step)]
    distances = {after - before for before, after in itertools.pairwise(due)}
    assert max(distances, default=0) - min(distances, default=0) <= 1


@given(calendar=calendars(), step=st.integers(1, 1000))
def test_saves_between_evaluations_are_every_so_many_steps(calendar: Calendar, step: int) -> None:
    assert calendar.saves_at(step) == (calendar.save_every is not None and step % calendar.save_every == 0)


def test_every_epoch_takes_its_steps(tmp_path: Path) -> None:
    experiment = tiny(tmp_path, "train.epochs=3", "checkpoint.every_steps=5")
    calendar = Calendar.of(experiment, 9)
    assert (calendar.steps_per_epoch, calendar.total_steps, calendar.save_every) == (9, 27, 5)
