"""A stop while data is prepared: the attempt leaves as one that was asked to, and the next one prepares."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolkit.tiny import assert_equal_runs, tiny
from tests.toolkit.tiny_training import Attempt, Lab
from toolkit.run.attempts.records import read_attempts


@pytest.mark.parametrize("size", [1, 2])
def test_a_run_that_is_stopped_while_its_data_is_prepared_leaves_and_prepares_anew(
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
