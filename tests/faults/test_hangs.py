"""Ranks that hang are noticed, named with what they were doing, and left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.story import Run, Runs, assert_as_if_nothing_had_happened, wake_up
from tests.toolkit.support.tiny import metrics_lines, tiny
from toolkit.config import Experiment
from toolkit.exit_codes import ExitCode
from toolkit.files import read_json

#: Long enough for a machine that does other things too.
NOTICED_AFTER_S = 12


@pytest.fixture(scope="module")
def watched(data: Path) -> Experiment:
    """The experiment of all faults; how long to wait for a hanging rank does not change what is computed."""
    limit = f"train.hang_timeout_s={NOTICED_AFTER_S}"
    return tiny(data, "train.reduction=exact", "checkpoint.every_steps=2", limit)


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_frozen_rank_is_named_and_fenced_when_it_wakes_up(
    runs: Runs, watched: Experiment, undisturbed: Run, rank: int
) -> None:
    """Rank 0 holds the run's lock all the while; the scheduler starts the same job again."""
    run = runs.run(watched, job="17")
    frozen = run.freezes(2, rank=rank, step=5)
    failure = read_json(run.folder.failure)
    assert (failure["class"], failure["rank"]) == ("hang", rank)
    run.finish(2)
    assert wake_up(frozen).exit_status == ExitCode.FENCED
    assert len(metrics_lines(run.folder)) == len(metrics_lines(undisturbed.folder))
    assert_as_if_nothing_had_happened(run, undisturbed)
