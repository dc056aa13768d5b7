"""A stop during an evaluation: no step is lost, and the evaluation is made after the restart."""

from __future__ import annotations

import pytest

from tests.tiers import first_quick
from tests.toolkit.support.tiny import STEPS_PER_EPOCH, assert_equal_runs, tiny
from tests.toolkit.support.tiny_training import Attempt, Lab
from toolkit.files import read_json
from toolkit.run.attempts.goodput import timeline
from toolkit.run.attempts.records import read_attempts
from toolkit.run.run_dir import RunDir

#: Half an epoch to the first evaluation; its 23 samples make five batches.
FIRST = STEPS_PER_EPOCH // 2


@pytest.fixture(scope="module")
def undisturbed(lab: Lab) -> RunDir:
    return lab.train(tiny(lab.folder), Attempt())


@pytest.mark.parametrize(
    "attempts",
    [
        # In the third batch of the first evaluation, on one process; then goes on with two.
        pytest.param((Attempt(stop_in_batch=3), Attempt(size=2)), id="one, then two"),
        # Only rank 1 hears of it, before the second of three rounds of batches.
        pytest.param(
            (Attempt(size=2, stop_in_batch=2, ranks=(1,)), Attempt()), id="one of two", marks=pytest.mark.slow
        ),
        # Again in the evaluation that is made up for, and in the one after that.
        pytest.param(
            (Attempt(stop_in_batch=3), Attempt(stop_in_batch=4), Attempt(stop_in_batch=7), Attempt()),
            id="again and again",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_run_stopped_in_an_evaluation_equals_the_undisturbed_one(
    lab: Lab, undisturbed: RunDir, attempts: tuple[Attempt, ...]
) -> None:
    run = lab.train(tiny(lab.folder), *attempts)
    assert_equal_runs(undisturbed, run)
    first = read_attempts(run)[0]
    assert (first.last_step, first.why) == (FIRST, "asked by a test")


@pytest.mark.parametrize("attempt", [Attempt(stop_in_batch=4 * 5 - 1), Attempt(stop_after=4 * FIRST)])
def test_run_stopped_in_the_last_step_or_its_evaluation_equals_the_undisturbed_one(
    lab: Lab, undisturbed: RunDir, attempt: Attempt
) -> None:
    run = lab.train(tiny(lab.folder), attempt, Attempt())
    assert_equal_runs(undisturbed, run)
    first, second = (each.spent for each in timeline(run, 0))
    assert first.training > 0 == first.finishing
    assert min(second.starting, second.finishing) > 0 == second.training


def test_log_says_that_patience_ended_the_run_after_a_stop_in_its_last_evaluation(lab: Lab) -> None:
    """The weights do not change, so the second evaluation is no better."""
    experiment = tiny(lab.folder, "evaluation.patience=1", "optimizer.lr=1e-30")
    run = lab.train(experiment, Attempt(stop_in_batch=5 + 2), Attempt())
    assert read_json(run.result)["step"] == 2 * FIRST
    assert any("evaluation.patience" in log.read_text() for log in run.logs.glob("*.log"))


@pytest.mark.parametrize("batch", first_quick([2, 7]))
def test_next_attempt_scores_the_best_weights_after_a_stop_in_the_scoring(
    lab: Lab, undisturbed: RunDir, batch: int
) -> None:
    """Five batches of validation, then three of test."""
    run = lab.start(tiny(lab.folder))
    lab.go_on(run, Attempt(stop_in_batch=4 * 5 + batch), "yielded")
    assert not run.result.exists()
    lab.go_on(run, Attempt(), "finished")
    assert_equal_runs(undisturbed, run)
    assert read_json(run.result)["metrics"]["test"] == read_json(undisturbed.result)["metrics"]["test"]


def test_checkpoint_is_restored_after_an_interrupted_replacement(lab: Lab, undisturbed: RunDir) -> None:
    """A process that ends between the two renames leaves the earlier checkpoint under a hidden name."""
    run = lab.start(tiny(lab.folder))
    lab.go_on(run, Attempt(stop_in_batch=1), "yielded")
    folder = run.checkpoint(FIRST)
    folder.rename(folder.with_name(f".{folder.name}.replaced"))
    lab.go_on(run, Attempt(), "finished")
    assert_equal_runs(undisturbed, run)
    assert read_attempts(run)[1].first_step == FIRST
    assert not [*run.checkpoints.glob(".*")]
