"""Processes that die silently, full disks, and a loss that is not a number."""

from __future__ import annotations

import pytest

from tests.faults.story import (
    Run,
    assert_as_if_nothing_had_happened,
    fill_disk,
    kill,
    kill_during_save,
    lose_the_loss,
    preempt_at,
    wait_for_the_writer,
)
from tests.tiers import first_quick
from toolkit.files import read_json
from toolkit.reliability.fault_injection import SAVE_POINTS
from toolkit.run.attempts.records import read_attempts

#: A killed process leaves the same files before and after an fsync.
POINTS = [point.partition(":")[2] for point in SAVE_POINTS if "fsync" not in point]


@pytest.mark.parametrize("at", first_quick(["communication", "forward", "optimizer", "evaluation", "save"]))
def test_run_survives_a_killed_rank(run: Run, undisturbed: Run, at: str) -> None:
    """By turns rank 0, which saves, and rank 1, which does not. What was not saved is done again."""
    step = {"evaluation": 8, "save": 10}.get(at, 9)
    # When six steps are done there is time for their save to reach the disk.
    run.breaks(2, wait_for_the_writer(5), wait_for_the_writer(7), kill(rank=step % 2, step=step, at=at))
    run.finish(1)
    # Killed after the last exchange of a step, it leaves the others to complete and save that step.
    assert 6 <= read_attempts(run.folder)[-1].first_step <= step + 1
    assert_as_if_nothing_had_happened(run, undisturbed)


@pytest.mark.parametrize("point", first_quick(POINTS))
def test_run_survives_a_kill_at_any_point_of_the_save_before_a_stop(
    run: Run, undisturbed: Run, point: str
) -> None:
    run.breaks(2, preempt_at(9), kill_during_save(point, step=10))
    run.finish(1)
    assert_as_if_nothing_had_happened(run, undisturbed)


@pytest.mark.parametrize("point", first_quick(["before_manifest", "after_rename"]))
def test_run_survives_a_kill_during_a_background_save(run: Run, undisturbed: Run, point: str) -> None:
    run.breaks(1, kill_during_save(point, step=10))
    run.finish(2)
    assert_as_if_nothing_had_happened(run, undisturbed)


def test_run_survives_kills_before_any_save(run: Run, undisturbed: Run) -> None:
    run.breaks(2, kill(rank=0, step=1))
    run.breaks(2, kill_during_save("write", step=2))
    run.finish(2)
    assert_as_if_nothing_had_happened(run, undisturbed)


# ---- a full disk, a loss that is not a number


@pytest.mark.parametrize("point", first_quick(["write", "open", "before_manifest"]))
def test_full_disk_does_not_end_the_run(run: Run, undisturbed: Run, point: str) -> None:
    """It says so, keeps what it has, and the next save succeeds."""
    run.finish(2, fill_disk(step=6, point=point))
    (failed,) = run.events("save_failed")
    assert failed["step"] == 6
    assert "No space left" in failed["reason"]
    assert_as_if_nothing_had_happened(run, undisturbed)


def test_nan_loss_ends_the_attempt_not_the_run(run: Run, undisturbed: Run) -> None:
    """It is neither saved nor learnt from; the next attempt computes the step again."""
    run.breaks(2, lose_the_loss(step=5, rank=1))
    failure = read_json(run.folder.failure)
    assert (failure["class"], failure["step"]) == ("diverged", 5)
    run.finish(2)
    assert_as_if_nothing_had_happened(run, undisturbed)
