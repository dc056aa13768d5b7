"""Which actions are due depends on the step alone."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.config.schema import Checkpoint, Train
from toolkit.errors import DataError
from toolkit.training.schedule.due_steps import StepSchedule


@st.composite
def calendars(draw: st.DrawFn) -> StepSchedule:
    steps_per_epoch = draw(st.integers(1, 400))
    return StepSchedule(
        steps_per_epoch=steps_per_epoch,
        total_steps=steps_per_epoch * draw(st.integers(1, 4)),
        log_per_epoch=draw(st.integers(1, 500)),
        eval_per_epoch=draw(st.integers(1, 500)),
        save_every=draw(st.none() | st.integers(1, 50)),
        compare_every=None,
    )


@given(schedule=calendars())
def test_each_epoch_has_the_requested_logs_and_evaluations_or_one_per_step(schedule: StepSchedule) -> None:
    for first in range(0, schedule.total_steps, schedule.steps_per_epoch):
        steps = range(first + 1, first + schedule.steps_per_epoch + 1)
        logs = sum(schedule.logs_at(step) for step in steps)
        evaluations = sum(schedule.evaluates_at(step) for step in steps)
        assert logs == min(schedule.log_per_epoch, schedule.steps_per_epoch)
        assert evaluations == min(schedule.eval_per_epoch, schedule.steps_per_epoch)


@given(schedule=calendars())
def test_last_step_of_every_epoch_is_due(schedule: StepSchedule) -> None:
    for step in range(schedule.steps_per_epoch, schedule.total_steps + 1, schedule.steps_per_epoch):
        assert schedule.logs_at(step)
        assert schedule.evaluates_at(step)
        assert schedule.epoch(step) == step // schedule.steps_per_epoch


@given(schedule=calendars())
def test_evaluations_are_evenly_spaced(schedule: StepSchedule) -> None:
    due = [step for step in range(1, schedule.total_steps + 1) if schedule.evaluates_at(step)]
    distances = {after - before for before, after in itertools.pairwise(due)}
    assert max(distances, default=0) - min(distances, default=0) <= 1


@given(schedule=calendars(), step=st.integers(1, 1000))
def test_saves_are_due_every_save_every_steps(schedule: StepSchedule, step: int) -> None:
    assert schedule.saves_at(step) == (schedule.save_every is not None and step % schedule.save_every == 0)


@given(steps=st.integers(1, 1000), of_epoch=st.integers(1, 100), every=st.integers(1, 300))
def test_run_of_steps_is_evaluated_every_eval_steps_and_at_its_end(
    steps: int, of_epoch: int, every: int
) -> None:
    schedule = StepSchedule.of(_with(Train(steps=steps, eval_steps=every)), of_epoch)
    due = [step for step in range(1, steps + 1) if schedule.evaluates_at(step)]
    assert due == sorted({*range(every, steps + 1, every), steps})
    assert schedule.logs_at(steps)
    assert (schedule.epochs - 1) * of_epoch < steps <= schedule.epochs * of_epoch


@given(epochs=st.integers(1, 20), of_epoch=st.integers(1, 50), every=st.integers(1, 25))
def test_evaluations_follow_eval_epochs(epochs: int, of_epoch: int, every: int) -> None:
    schedule = StepSchedule.of(_with(Train(epochs=epochs, eval_epochs=every)), of_epoch)
    due = [step for step in range(1, epochs * of_epoch + 1) if schedule.evaluates_at(step)]
    assert due == [of_epoch * epoch for epoch in sorted({*range(every, epochs + 1, every), epochs})]


def test_training_set_without_samples_is_refused() -> None:
    with pytest.raises(DataError, match="no samples"):
        StepSchedule.of(_with(Train(epochs=1)), 0)


def _with(train: Train) -> Any:
    """The two sections that a schedule looks at."""
    return SimpleNamespace(train=train, checkpoint=Checkpoint())
