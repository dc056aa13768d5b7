"""A run that is asked to stop, wherever it is at that moment, and goes on: not a step is lost."""

from __future__ import annotations

import pytest

from tests.faults.story import Run, assert_as_if_nothing_had_happened, preempt_at, preempt_during_save
from tests.tiers import first_quick
from toolkit.run.attempts.records import read_attempts


@pytest.mark.parametrize(
    "what, step",
    first_quick(
        [
            pytest.param(
                [preempt_at(5, at=at) for at in ("data", "backward", "communication")]
                + [preempt_at(6, at="save"), preempt_at(6, rank=0, at="save:before_manifest")],
                6,
                id="five times, the last ones into the save",
            ),
            pytest.param([preempt_at(0, at="data")], 1, id="in the first step"),
            pytest.param([preempt_at(5, at="communication")], 6, id="before the step is agreed on"),
            pytest.param([preempt_at(5, at="optimizer")], 7, id="in the update"),
            pytest.param([preempt_at(4, at="evaluation")], 4, id="in an evaluation"),
            pytest.param([preempt_at(6, at="save")], 7, id="before a save"),
            pytest.param([preempt_during_save("write", step=6)], 7, id="in a save"),
            pytest.param([preempt_at(5, rank=0)], 6, id="rank 0 alone"),
            pytest.param(
                [preempt_at(5, rank=1, at="data"), preempt_at(5, rank=0, at="optimizer")],
                6,
                id="the other rank when the step has been agreed on",
            ),
        ]
    ),
)
def test_run_asked_to_stop_at_any_point_resumes_without_losing_a_step(
    run: Run, undisturbed: Run, what: list[str], step: int
) -> None:
    run.yields(2, *what)
    run.finish(2)
    stopped, resumed = read_attempts(run.folder)
    assert stopped.last_step == resumed.first_step
    # A signal that the writer's thread raised reaches the loop a moment later.
    assert stopped.last_step >= step if "save:write" in what[0] else stopped.last_step == step, what
    assert not run.folder.failure.exists()
    assert_as_if_nothing_had_happened(run, undisturbed)


@pytest.mark.slow
def test_run_asked_to_stop_during_data_preparation_does_one_step_and_resumes(
    run: Run, undisturbed: Run
) -> None:
    """The run is held to its promise: a step is done before it leaves."""
    assert run.yields(2, early=True) == 1
    run.finish(1)
    assert_as_if_nothing_had_happened(run, undisturbed)
