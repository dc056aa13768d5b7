"""A run whose number of processes changes from start to start."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.story import Run, kill, preempt_at, samples_by_epoch
from tests.toolkit.support.tiny import SIZES, STEPS_PER_EPOCH


@pytest.mark.parametrize("sizes", [(1, 2), (4, 3)])
def test_every_sample_is_trained_on_once_in_each_epoch(
    run: Run, tmp_path: Path, sizes: tuple[int, int]
) -> None:
    """Stopped in one, killed in the other epoch; what was not saved is read again, and alike."""
    journals = [tmp_path / name for name in ("stopped", "killed", "finished")]
    run.yields(sizes[0], preempt_at(3), journal=journals[0])
    run.start(sizes[1], kill(rank=sizes[1] - 1, step=STEPS_PER_EPOCH + 3), journal=journals[1])
    run.finish(sizes[0], journal=journals[2])
    assert samples_by_epoch(journals, STEPS_PER_EPOCH) == [list(range(SIZES["train"]))] * 2
