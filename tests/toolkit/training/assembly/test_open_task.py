"""A stop during data preparation: the attempt exits as requested, and the next one prepares the data."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolkit.support.tiny import assert_equal_runs, tiny
from tests.toolkit.support.tiny_training import Attempt, Lab
from toolkit.run.attempts.records import read_attempts


@pytest.mark.parametrize("size", [1, 2])
def test_a_run_stopped_during_data_preparation_prepares_again_and_finishes(
    lab: Lab, tmp_path: Path, size: int
) -> None:
    run = lab.start(tiny(tmp_path))
    # Only rank 0 prepares, and hears of it.
    lab.go_on(run, Attempt(size=size, stop_in_preparation=True), "yielded")
    (attempt,) = read_attempts(run)
    assert (attempt.first_step, attempt.last_step, attempt.why) == (0, 0, "asked by a test")
    assert not run.failure.exists()
    lab.go_on(run, Attempt(), "finished")
    assert_equal_runs(lab.train(tiny(lab.folder), Attempt()), run)
